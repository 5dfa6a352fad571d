-- Money moves between known accounts of one asset.
SELECT t.ref::text, t.asset, coalesce(d.asset, 'no account') || ' > ' || coalesce(c.asset, 'no account')
  FROM offpeak.transfer t LEFT JOIN offpeak.account d ON d.id = t.debit
  LEFT JOIN offpeak.account c ON c.id = t.credit
 WHERE d.asset IS DISTINCT FROM t.asset OR c.asset IS DISTINCT FROM t.asset
