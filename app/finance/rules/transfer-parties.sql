-- Every transfer is a deposit, a charge or refund of the job's own wallet, or an accrual to the lease's own supplier.
SELECT t.ref::text, 'deposit, charge, refund or accrual', d.kind || ' ' || d.id || ' to ' || c.kind || ' ' || c.id
  FROM offpeak.transfer t
  JOIN offpeak.account d ON d.id = t.debit JOIN offpeak.account c ON c.id = t.credit
  LEFT JOIN offpeak.job j ON j.id = t.ref
  LEFT JOIN offpeak.correction k ON k.record_id = t.ref LEFT JOIN offpeak.job kj ON kj.id = k.job_id
  LEFT JOIN offpeak.lease l ON l.id = t.ref LEFT JOIN offpeak.agent a ON a.id = l.agent_id
 WHERE d.asset <> t.asset OR c.asset <> t.asset
    OR (CASE d.kind || ' to ' || c.kind
          WHEN 'deposit_clearing to wallet' THEN j.id IS NULL AND l.id IS NULL AND k.record_id IS NULL
          WHEN 'wallet to fee' THEN j.account_id = t.debit
          WHEN 'fee to wallet' THEN kj.account_id = t.credit
          WHEN 'fee to supplier' THEN c.owner = a.supplier_id::text
        END) IS NOT TRUE
