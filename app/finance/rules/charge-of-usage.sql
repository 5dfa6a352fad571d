-- A charge is the quoted rates times the measured tokens, rounded down, within the hold.
SELECT u.record_id::text, least(u.held, v.exact)::text, u.charge::text
  FROM offpeak.usage_record u JOIN offpeak.job j ON j.id = u.record_id
  CROSS JOIN LATERAL (SELECT div(j.per_request::numeric * 1000000
         + u.input_tokens::numeric * j.input_rate + u.output_tokens::numeric * j.output_rate,
         1000000) AS exact) v
 WHERE u.outcome = 1 AND u.charge <> least(u.held, v.exact)
