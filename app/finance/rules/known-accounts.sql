-- Money moves between known accounts of one asset, and a wallet's account is its payer's.
SELECT t.ref::text, t.asset, coalesce(d.asset, 'no account') || ' > ' || coalesce(c.asset, 'no account')
  FROM offpeak.transfer t LEFT JOIN offpeak.account d ON d.id = t.debit
  LEFT JOIN offpeak.account c ON c.id = t.credit
 WHERE d.asset IS DISTINCT FROM t.asset OR c.asset IS DISTINCT FROM t.asset
UNION ALL
SELECT x.account_id::text, x.payer, a.kind || ' ' || a.owner
  FROM (SELECT DISTINCT r.account_id, r.payer FROM offpeak.request_authorization r) x
  JOIN offpeak.account a ON a.id = x.account_id
 WHERE a.kind <> 'wallet' OR a.owner <> x.payer
