-- Withdrawal clearing holds the pending withdrawals.
SELECT a.asset, coalesce(o.amount, 0)::text, coalesce(t.amount, 0)::text
  FROM offpeak.account a
  LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM (
         SELECT credit AS account_id, amount FROM offpeak.transfer
         UNION ALL SELECT debit, -amount FROM offpeak.transfer) x GROUP BY account_id) t ON t.account_id = a.id
  LEFT JOIN (SELECT x.asset, sum(w.amount) AS amount FROM offpeak.withdrawal w JOIN offpeak.account x ON x.id = w.account_id
              WHERE w.state = 'pending' GROUP BY x.asset) o ON o.asset = a.asset
 WHERE a.kind = 'withdraw_clearing' AND coalesce(o.amount, 0) <> coalesce(t.amount, 0)
