-- What a correction gives back is one transfer from fees to its wallet, and there is none without a correction.
SELECT coalesce(c.record_id, t.ref)::text, coalesce(c.released, 0)::text, coalesce(t.amount, 0)::text
  FROM (SELECT c.record_id, u.released, u.account_id FROM offpeak.correction c
          JOIN offpeak.usage_record u ON u.record_id = c.record_id) c
  FULL JOIN (SELECT t.ref, t.amount, t.credit FROM offpeak.transfer t
               JOIN offpeak.account d ON d.id = t.debit AND d.kind = 'fee'
               JOIN offpeak.account a ON a.id = t.credit AND a.kind = 'wallet') t ON t.ref = c.record_id
 WHERE c.released IS DISTINCT FROM t.amount OR c.account_id IS DISTINCT FROM t.credit
