-- Each sealed record is in exactly one receipt batch.
SELECT u.record_id::text, '1', n.batches::text, b.booked_at
  FROM offpeak.booked_records(:start, :end) b JOIN offpeak.usage_record u ON u.record_id = b.record_id
  CROSS JOIN LATERAL (SELECT count(*) AS batches FROM offpeak.receipt_batch x
                       WHERE x.start <= u.leaf_index AND u.leaf_index < x."end") n
 WHERE u.leaf_index IS NOT NULL AND n.batches <> 1
