-- A correction starts from what its record charged, for the same wallet, job and tokens, and gives something back.
SELECT coalesce(u.record_id, c.record_id)::text, coalesce(o.charge::text, 'no record to correct'),
       coalesce(u.held::text, 'no record')
  FROM (SELECT * FROM offpeak.usage_record WHERE outcome = 4) u
  FULL JOIN offpeak.correction c ON c.record_id = u.record_id
  LEFT JOIN offpeak.usage_record o ON o.record_id = c.corrects
  LEFT JOIN offpeak.correction before ON before.record_id = c.corrects
 WHERE (u.account_id = o.account_id AND u.held = o.charge AND u.released > 0
        AND u.payer_seq > o.payer_seq AND u.completed_at >= o.completed_at
        AND (u.input_tokens, u.cached_input_tokens, u.output_tokens, u.reasoning_tokens)
          = (o.input_tokens, o.cached_input_tokens, o.output_tokens, o.reasoning_tokens)
        AND u.supplier_statement = o.supplier_statement AND u.response_digest = o.response_digest
        AND c.job_id = coalesce(before.job_id, c.corrects)) IS NOT TRUE
