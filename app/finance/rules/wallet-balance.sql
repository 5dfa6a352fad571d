-- A wallet has what came in, less what went out and what is held.
SELECT w.account_id::text, coalesce(t.net, 0)::text, (w.available + w.held)::text
  FROM offpeak.wallet_balance w LEFT JOIN (
       SELECT account_id, sum(amount) AS net FROM (
         SELECT credit AS account_id, amount FROM offpeak.transfer
         UNION ALL SELECT debit, -amount FROM offpeak.transfer) x
        GROUP BY account_id) t USING (account_id)
 WHERE w.available + w.held <> coalesce(t.net, 0)
