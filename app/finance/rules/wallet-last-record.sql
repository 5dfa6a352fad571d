-- A wallet remembers the number and the id of its last record.
SELECT w.account_id::text, coalesce(u.payer_seq, 0) || ' ' || coalesce(u.record_id::text, '-'),
       w.payer_seq || ' ' || coalesce(w.last_record::text, '-')
  FROM offpeak.wallet_balance w LEFT JOIN (
       SELECT DISTINCT ON (account_id) account_id, payer_seq, record_id FROM offpeak.usage_record
        ORDER BY account_id, payer_seq DESC) u USING (account_id)
 WHERE w.payer_seq <> coalesce(u.payer_seq, 0) OR w.last_record IS DISTINCT FROM u.record_id
