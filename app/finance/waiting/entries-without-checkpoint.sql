-- Log entries that no checkpoint covers.
SELECT 'entry ' || e.index, e.logged_at, NULL::timestamptz FROM offpeak.log_entry e
 WHERE e.index >= coalesce((SELECT max(c.size) FROM offpeak.log_checkpoint c), 0)
