-- What a wallet owes is what its receivable account says.
SELECT a.owner, coalesce(w.owed, 0)::text, (-coalesce(t.amount, 0))::text
  FROM offpeak.account a
  LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM (
         SELECT credit AS account_id, amount FROM offpeak.transfer
         UNION ALL SELECT debit, -amount FROM offpeak.transfer) x GROUP BY account_id) t ON t.account_id = a.id
  LEFT JOIN offpeak.account x ON x.kind = 'wallet' AND x.owner = a.owner AND x.asset = a.asset
  LEFT JOIN offpeak.wallet_balance w ON w.account_id = x.id
 WHERE a.kind = 'receivable' AND coalesce(w.owed, 0) <> -coalesce(t.amount, 0)
UNION ALL
SELECT w.account_id::text, w.owed::text, 'no receivable' FROM offpeak.wallet_balance w JOIN offpeak.account a ON a.id = w.account_id
 WHERE w.owed > 0 AND NOT EXISTS (SELECT FROM offpeak.account r
                                   WHERE r.kind = 'receivable' AND r.owner = a.owner AND r.asset = a.asset)
