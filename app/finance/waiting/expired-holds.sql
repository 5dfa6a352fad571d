-- Holds past their expiry that nobody ended.
SELECT h.id::text, h.expires_at, NULL::timestamptz FROM offpeak.job j JOIN offpeak.hold h ON h.id = j.id
 WHERE j.state IN ('queued', 'accepted', 'running') AND h.expires_at < now()
