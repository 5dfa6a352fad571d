-- An active lease belongs to the job that runs under it, and to no other.
SELECT l.id::text, l.job_id::text, coalesce(j.id::text, 'no job')
  FROM offpeak.lease l LEFT JOIN offpeak.job j ON j.lease_id = l.id
 WHERE l.state = 'active' AND j.id IS DISTINCT FROM l.job_id
