-- Each refund has its correction with the same amount and wallet, booked with it, and each correction its refund.
SELECT coalesce(r.record_id, t.ref)::text, coalesce(r.released, 0)::text, coalesce(t.amount, 0)::text,
       coalesce(t.booked_at, r.booked_at)
  FROM (SELECT u.record_id, u.released, u.account_id, b.booked_at FROM offpeak.booked_records(:start, :end) b
          JOIN offpeak.usage_record u ON u.record_id = b.record_id
          JOIN offpeak.correction c ON c.record_id = b.record_id) r
  FULL JOIN (SELECT b.ref, b.amount, b.credit, b.booked_at FROM offpeak.booked_transfers(:start, :end) b
               JOIN offpeak.account f ON f.id = b.debit AND f.kind = 'fee'
               JOIN offpeak.account w ON w.id = b.credit AND w.kind = 'wallet') t ON t.ref = r.record_id
 WHERE r.released IS DISTINCT FROM t.amount OR r.account_id IS DISTINCT FROM t.credit
    OR r.booked_at <> date_trunc('second', t.booked_at)
