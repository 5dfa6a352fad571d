-- Every row on the money path has the row it belongs to.
SELECT x.id::text, x.parent, 'missing'
  FROM (SELECT h.id, 'job of hold' AS parent FROM offpeak.hold h
         WHERE NOT EXISTS (SELECT FROM offpeak.job j WHERE j.id = h.id AND j.account_id = h.account_id)
        UNION ALL
        SELECT h.id, 'wallet of hold' FROM offpeak.hold h
         WHERE NOT EXISTS (SELECT FROM offpeak.wallet_balance w WHERE w.account_id = h.account_id)
        UNION ALL
        SELECT u.record_id, 'resolution of record' FROM offpeak.usage_record u
         WHERE u.outcome <> 4 AND NOT EXISTS (SELECT FROM offpeak.hold_resolution r WHERE r.hold_id = u.record_id)
        UNION ALL
        SELECT c.record_id, 'job of correction' FROM offpeak.correction c
         WHERE NOT EXISTS (SELECT FROM offpeak.job j WHERE j.id = c.job_id)
        UNION ALL
        SELECT c.lease_id, 'lease of cost' FROM offpeak.cost_entry c
         WHERE c.kind <> 'overhead' AND NOT EXISTS (SELECT FROM offpeak.lease l WHERE l.id = c.lease_id)
        UNION ALL
        SELECT l.id, 'job of lease' FROM offpeak.lease l
         WHERE NOT EXISTS (SELECT FROM offpeak.job j WHERE j.id = l.job_id)
        UNION ALL
        SELECT j.id, 'authorization of job' FROM offpeak.job j
         WHERE NOT EXISTS (SELECT FROM offpeak.request_authorization a WHERE a.digest = j.authorization_digest
                              AND a.account_id = j.account_id)) x
