-- Exit clearing holds what is set aside for the open exits.
SELECT a.asset, coalesce(o.amount, 0)::text, coalesce(t.amount, 0)::text
  FROM offpeak.account a
  LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM (
         SELECT credit AS account_id, amount FROM offpeak.transfer
         UNION ALL SELECT debit, -amount FROM offpeak.transfer) x GROUP BY account_id) t ON t.account_id = a.id
  LEFT JOIN (SELECT w.asset, sum(e.clearing) AS amount FROM offpeak.wallet_exit e JOIN offpeak.account w ON w.id = e.account_id
              GROUP BY w.asset) o ON o.asset = a.asset
 WHERE a.kind = 'exit_clearing' AND coalesce(o.amount, 0) <> coalesce(t.amount, 0)
