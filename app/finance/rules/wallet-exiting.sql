-- A wallet is closed for an exit exactly while one is open.
SELECT w.account_id::text, (e.id IS NOT NULL)::text, w.exiting::text
  FROM offpeak.wallet_balance w LEFT JOIN offpeak.wallet_exit e ON e.account_id = w.account_id AND e.state = 'open'
 WHERE w.exiting <> (e.id IS NOT NULL)
