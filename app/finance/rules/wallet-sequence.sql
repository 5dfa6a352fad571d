-- A wallet's records are numbered from 1 without a gap and each names the one before.
SELECT u.record_id::text, coalesce(u.before::text, '-'), coalesce(u.previous_record::text, '-')
  FROM (SELECT record_id, payer_seq, previous_record,
               lag(record_id) OVER w AS before, row_number() OVER w AS place
          FROM offpeak.usage_record WINDOW w AS (PARTITION BY account_id ORDER BY payer_seq)) u
 WHERE u.payer_seq <> u.place OR u.previous_record IS DISTINCT FROM u.before
