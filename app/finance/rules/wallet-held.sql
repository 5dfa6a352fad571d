-- What a wallet has held is the sum of its open holds.
SELECT w.account_id::text, coalesce(h.amount, 0)::text, w.held::text
  FROM offpeak.wallet_balance w LEFT JOIN (
       SELECT h.account_id, sum(h.amount) AS amount FROM offpeak.hold h
        WHERE NOT EXISTS (SELECT FROM offpeak.hold_resolution r WHERE r.hold_id = h.id)
        GROUP BY h.account_id) h USING (account_id)
 WHERE w.held <> coalesce(h.amount, 0)
