-- Chain events that are seen and not booked yet.
SELECT e.kind || ' ' || e.id, e.seen_at, NULL::timestamptz FROM offpeak.chain_event e WHERE e.state = 'seen'
