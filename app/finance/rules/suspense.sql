-- Suspense holds the plain transfers of each sender that have not been credited.
SELECT a.owner, (coalesce(p.amount, 0) - coalesce(k.amount, 0))::text, coalesce(t.amount, 0)::text
  FROM offpeak.account a
  LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM (
         SELECT credit AS account_id, amount FROM offpeak.transfer
         UNION ALL SELECT debit, -amount FROM offpeak.transfer) x GROUP BY account_id) t ON t.account_id = a.id
  LEFT JOIN (SELECT e.payer, sum(e.amount) * 1000 AS amount FROM offpeak.chain_event e
              WHERE e.kind = 'plain-transfer' AND e.state = 'booked' GROUP BY 1) p ON p.payer = a.owner
  LEFT JOIN (SELECT e.payer, sum(e.amount) * 1000 AS amount FROM offpeak.suspense_claim c
               JOIN offpeak.chain_event e ON e.id = c.event_id WHERE c.state = 'credited' GROUP BY 1) k ON k.payer = a.owner
 WHERE a.kind = 'suspense' AND coalesce(p.amount, 0) - coalesce(k.amount, 0) <> coalesce(t.amount, 0)
