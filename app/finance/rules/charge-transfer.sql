-- A charge is one transfer from the wallet to fees, and there is none without a charge.
SELECT coalesce(r.hold_id, t.ref)::text, coalesce(r.charged, 0)::text, coalesce(t.amount, 0)::text
  FROM (SELECT * FROM offpeak.hold_resolution WHERE charged > 0) r
  FULL JOIN (SELECT t.ref, t.amount FROM offpeak.transfer t
               JOIN offpeak.account d ON d.id = t.debit AND d.kind = 'wallet'
               JOIN offpeak.account a ON a.id = t.credit AND a.kind = 'fee') t ON t.ref = r.hold_id
 WHERE r.charged IS DISTINCT FROM t.amount
