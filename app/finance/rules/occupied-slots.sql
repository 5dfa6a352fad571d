-- A deployment's occupied slots are its leases that have not ended.
SELECT d.id::text, coalesce(l.n, 0)::text, d.occupied::text
  FROM offpeak.deployment d LEFT JOIN (
       SELECT deployment_id, count(*) AS n FROM offpeak.lease
        WHERE state IN ('active', 'ending') GROUP BY deployment_id) l ON l.deployment_id = d.id
 WHERE d.occupied <> coalesce(l.n, 0)
