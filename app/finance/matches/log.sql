-- The log has one entry per place, each batch before the last logged one is in it, and nothing is signed beyond it.
SELECT 'entry ' || e.index, e.place::text, e.index::text, e.logged_at
  FROM (SELECT index, logged_at, row_number() OVER (ORDER BY index) - 1 AS place FROM offpeak.log_entry) e
 WHERE e.index <> e.place
UNION ALL
SELECT 'batch ' || b.number, 'in the log', 'left out', b.sealed_at FROM offpeak.receipt_batch b
 WHERE b.number < (SELECT max(e.batch_number) FROM offpeak.log_entry e)
   AND NOT EXISTS (SELECT FROM offpeak.log_entry e WHERE e.batch_number = b.number)
UNION ALL
SELECT 'entry ' || e.index, 'a batch', 'no batch ' || e.batch_number, e.logged_at FROM offpeak.log_entry e
 WHERE e.batch_number IS NOT NULL AND NOT EXISTS (SELECT FROM offpeak.receipt_batch b WHERE b.number = e.batch_number)
UNION ALL
SELECT 'checkpoint ' || c.size, 'a log of that size', 'a smaller log', c.signed_at FROM offpeak.log_checkpoint c
 WHERE c.size > (SELECT count(*) FROM offpeak.log_entry)
UNION ALL
SELECT 'entry ' || e.index, 'a checkpoint', 'none, but later ones', e.logged_at FROM offpeak.log_entry e
 WHERE e.index + 1 < (SELECT max(c.size) FROM offpeak.log_checkpoint c)
   AND NOT EXISTS (SELECT FROM offpeak.log_checkpoint c WHERE c.size = e.index + 1)
