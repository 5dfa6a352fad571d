-- Each accrual to a supplier is what its lease cost, made with it, and each cost of a lease has its accrual.
SELECT coalesce(c.lease_id, t.ref)::text, coalesce(c.amount, 0)::text, coalesce(t.amount, 0)::text,
       coalesce(t.booked_at, c.booked_at)
  FROM (SELECT b.ref, b.amount, b.booked_at, b.created_at FROM offpeak.booked_transfers(:start, :end) b
          JOIN offpeak.account s ON s.id = b.credit AND s.kind = 'supplier') t
  LEFT JOIN offpeak.cost_entry c ON c.lease_id = t.ref AND c.kind <> 'overhead'
 WHERE c.amount IS DISTINCT FROM t.amount OR c.booked_at <> t.created_at
UNION ALL
SELECT c.lease_id::text, c.amount::text, '0', c.booked_at
  FROM offpeak.cost_entry c
 WHERE c.booked_at >= :start AND c.booked_at < :end AND c.amount > 0 AND c.kind <> 'overhead'
   AND NOT EXISTS (SELECT FROM offpeak.transfer t JOIN offpeak.account s ON s.id = t.credit AND s.kind = 'supplier'
                    WHERE t.ref = c.lease_id)
