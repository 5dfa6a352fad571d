-- Every transfer is between the accounts of the job, lease, payout, withdrawal, exit or chain event that it is about.
SELECT t.ref::text, 'a known kind of transfer', d.kind || ' ' || d.id || ' to ' || c.kind || ' ' || c.id
  FROM offpeak.transfer t
  JOIN offpeak.account d ON d.id = t.debit JOIN offpeak.account c ON c.id = t.credit
  LEFT JOIN offpeak.job j ON j.id = t.ref
  LEFT JOIN offpeak.correction k ON k.record_id = t.ref LEFT JOIN offpeak.job kj ON kj.id = k.job_id
  LEFT JOIN offpeak.lease l ON l.id = t.ref LEFT JOIN offpeak.agent a ON a.id = l.agent_id
  LEFT JOIN offpeak.chain_event e ON e.id = t.ref LEFT JOIN offpeak.withdrawal w ON w.id = t.ref
  LEFT JOIN offpeak.payout p ON p.id = t.ref
 WHERE d.asset <> t.asset OR c.asset <> t.asset
    OR (CASE d.kind || ' to ' || c.kind
          WHEN 'deposit_clearing to wallet'
            THEN j.id IS NULL AND l.id IS NULL AND k.record_id IS NULL AND e.id IS NULL
          WHEN 'wallet to fee' THEN j.account_id = t.debit
          WHEN 'fee to wallet' THEN kj.account_id = t.credit
          WHEN 'fee to supplier' THEN c.owner = a.supplier_id::text
          WHEN 'treasury to wallet' THEN e.kind = 'deposited' AND c.owner = e.payer
          WHEN 'treasury to suspense' THEN e.kind = 'plain-transfer' AND c.owner = e.payer
          WHEN 'treasury to fee' THEN w.state = 'paid' OR e.kind = 'withdrawn'
          WHEN 'suspense to wallet' THEN e.kind = 'unaccounted-credited' AND c.owner = e.payer
          WHEN 'wallet to treasury' THEN d.owner = e.payer AND e.kind IN ('deposited', 'withdrawn', 'exit-finalized')
          WHEN 'receivable to treasury' THEN d.owner = e.payer AND e.kind IN ('deposited', 'withdrawn', 'exit-finalized')
          WHEN 'wallet to receivable' THEN d.owner = c.owner
          WHEN 'wallet to exit_clearing' THEN e.kind = 'exit-requested' AND d.owner = e.payer
          WHEN 'exit_clearing to wallet'
            THEN e.kind IN ('exit-requested', 'exit-reduced', 'exit-cancelled', 'exit-finalized') AND c.owner = e.payer
          WHEN 'exit_clearing to treasury' THEN e.kind IN ('exit-finalized', 'deposited', 'withdrawn')
          WHEN 'wallet to withdraw_clearing' THEN w.account_id = t.debit AND w.amount = t.amount
          WHEN 'withdraw_clearing to wallet'
            THEN w.account_id = t.credit AND w.amount = t.amount AND w.state = 'failed'
          WHEN 'withdraw_clearing to treasury' THEN w.amount = t.amount AND w.state = 'paid'
          WHEN 'supplier to payout_clearing' THEN d.owner = p.supplier_id::text AND p.amount = t.amount
          WHEN 'payout_clearing to treasury' THEN p.amount = t.amount AND p.state = 'paid'
          WHEN 'fee to treasury' THEN e.kind = 'paid-out'
        END) IS NOT TRUE
