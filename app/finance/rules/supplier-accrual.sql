-- What a lease cost is what its supplier was credited.
SELECT coalesce(c.lease_id, t.ref)::text, coalesce(c.amount, 0)::text, coalesce(t.amount, 0)::text
  FROM (SELECT * FROM offpeak.cost_entry WHERE amount > 0 AND kind <> 'overhead') c
  FULL JOIN (SELECT t.ref, t.amount FROM offpeak.transfer t
               JOIN offpeak.account a ON a.id = t.credit AND a.kind = 'supplier') t
    ON t.ref = c.lease_id
 WHERE c.amount IS DISTINCT FROM t.amount
