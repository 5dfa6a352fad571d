-- Each charge has its record with the same amount and wallet, booked with it, and each record its charge.
SELECT coalesce(r.record_id, t.ref)::text, coalesce(r.charge, 0)::text, coalesce(t.amount, 0)::text,
       coalesce(t.booked_at, r.booked_at)
  FROM (SELECT u.record_id, u.charge, u.account_id, b.booked_at FROM offpeak.booked_records(:start, :end) b
          JOIN offpeak.usage_record u ON u.record_id = b.record_id
         WHERE u.outcome <> 4 AND u.charge > 0) r
  FULL JOIN (SELECT b.ref, b.amount, b.debit, b.booked_at FROM offpeak.booked_transfers(:start, :end) b
               JOIN offpeak.account w ON w.id = b.debit AND w.kind = 'wallet'
               JOIN offpeak.account f ON f.id = b.credit AND f.kind = 'fee') t ON t.ref = r.record_id
 WHERE r.charge IS DISTINCT FROM t.amount OR r.account_id IS DISTINCT FROM t.debit
    OR r.booked_at <> date_trunc('second', t.booked_at)
