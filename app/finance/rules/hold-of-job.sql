-- Every job has one hold; it is resolved, as what was held, exactly when the job has ended.
SELECT j.id::text, j.state, coalesce(r.kind, CASE WHEN h.id IS NULL THEN 'no hold' ELSE 'open' END)
  FROM offpeak.job j LEFT JOIN offpeak.hold h ON h.id = j.id
  LEFT JOIN offpeak.hold_resolution r ON r.hold_id = j.id
 WHERE h.id IS NULL OR (r.hold_id IS NOT NULL) <> (j.ended_at IS NOT NULL) OR r.amount <> h.amount
