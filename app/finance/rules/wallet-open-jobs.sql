-- A wallet's count of open jobs is the number of its open jobs.
SELECT w.account_id::text, coalesce(j.n, 0)::text, w.open_jobs::text
  FROM offpeak.wallet_balance w LEFT JOIN (
       SELECT account_id, count(*) AS n FROM offpeak.job
        WHERE state IN ('queued', 'accepted', 'running') GROUP BY account_id) j USING (account_id)
 WHERE w.open_jobs <> coalesce(j.n, 0)
