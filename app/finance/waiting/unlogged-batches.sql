-- Receipt batches whose headers are not in the log.
SELECT 'batch ' || b.number, b.sealed_at, NULL::timestamptz FROM offpeak.receipt_batch b
 WHERE NOT EXISTS (SELECT FROM offpeak.log_entry e WHERE e.batch_number = b.number)
