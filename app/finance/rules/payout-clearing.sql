-- Payout clearing holds the pending payouts.
SELECT a.asset, coalesce(o.amount, 0)::text, coalesce(t.amount, 0)::text
  FROM offpeak.account a
  LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM (
         SELECT credit AS account_id, amount FROM offpeak.transfer
         UNION ALL SELECT debit, -amount FROM offpeak.transfer) x GROUP BY account_id) t ON t.account_id = a.id
  LEFT JOIN (SELECT p.asset, sum(p.amount) AS amount FROM offpeak.payout p WHERE p.state = 'pending' GROUP BY p.asset) o ON o.asset = a.asset
 WHERE a.kind = 'payout_clearing' AND coalesce(o.amount, 0) <> coalesce(t.amount, 0)
