-- Our transactions that have not ended.
SELECT t.purpose || ' ' || t.id, t.created_at, NULL::timestamptz FROM offpeak.chain_transaction t
 WHERE t.state IN ('queued', 'signed', 'mined')
