-- Our transactions on the chain: what has been signed, with which nonce, and what became of it.
--
-- queued -> signed (nonce and raw form stored, before anybody sees it) -> mined -> done or reverted.
-- 'done' and 'reverted' are ends at final depth; a mined one may fall back to signed. 'abandoned' is a
-- person's word that nobody follows it any more: what it was for may then be sent anew, because the
-- contracts do each thing once, whoever sends it.

-- Ask for a transaction; one open one per purpose and subject. Codes: ok, duplicate, halted (money does
-- not leave while accepting is stopped; spends, refunds, credits and anchors go on).
CREATE FUNCTION offpeak.enqueue_transaction(
  p_id uuid, p_chain bigint, p_sender text, p_purpose text, p_subject uuid, p_to text, p_data bytea)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF p_purpose IN ('withdrawal', 'payout') AND EXISTS (SELECT FROM offpeak.ledger_halt h WHERE h.cleared_at IS NULL) THEN
    RETURN 'halted';
  END IF;
  INSERT INTO offpeak.chain_transaction(id, chain_id, sender, purpose, subject, to_address, data, state, created_at)
  VALUES (p_id, p_chain, p_sender, p_purpose, p_subject, p_to, p_data, 'queued', clock_timestamp())
  ON CONFLICT DO NOTHING;
  RETURN CASE WHEN FOUND THEN 'ok' ELSE 'duplicate' END;
END $$;

-- Store the first signed form and take the nonce. Codes: ok, stale (not queued any more).
-- A nonce that is taken raises: whoever chose it did not hold the sender's lock.
CREATE FUNCTION offpeak.sign_transaction(
  p_id uuid, p_nonce bigint, p_hash bytea, p_raw bytea, p_gas bigint, p_max_fee numeric, p_priority_fee numeric)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE offpeak.chain_transaction t SET state = 'signed', nonce = p_nonce, gas = p_gas, last_error = NULL, not_before = NULL
   WHERE t.id = p_id AND t.state = 'queued';
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  INSERT INTO offpeak.chain_attempt(hash, transaction_id, raw, max_fee, priority_fee, created_at)
  VALUES (p_hash, p_id, p_raw, p_max_fee, p_priority_fee, clock_timestamp());
  RETURN 'ok';
END $$;

-- Store a replacement at the same nonce. Codes: ok, stale (not signed any more).
CREATE FUNCTION offpeak.add_attempt(p_id uuid, p_hash bytea, p_raw bytea, p_max_fee numeric, p_priority_fee numeric)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM FROM offpeak.chain_transaction t WHERE t.id = p_id AND t.state = 'signed' FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  INSERT INTO offpeak.chain_attempt(hash, transaction_id, raw, max_fee, priority_fee, created_at)
  VALUES (p_hash, p_id, p_raw, p_max_fee, p_priority_fee, clock_timestamp()) ON CONFLICT (hash) DO NOTHING;
  RETURN 'ok';
END $$;

-- A node has taken an attempt; the first time counts for its age.
CREATE FUNCTION offpeak.note_broadcast(p_hash bytea)
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE offpeak.chain_attempt a SET broadcast_at = clock_timestamp() WHERE a.hash = p_hash AND a.broadcast_at IS NULL
$$;

-- An attempt has a receipt in a canonical block. Codes: ok, stale.
CREATE FUNCTION offpeak.mine_transaction(p_id uuid, p_hash bytea, p_number bigint, p_block bytea)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE offpeak.chain_transaction t
     SET state = 'mined', mined_hash = p_hash, mined_number = p_number, mined_block = p_block, last_error = NULL
   WHERE t.id = p_id AND t.state IN ('signed', 'mined')
     AND EXISTS (SELECT FROM offpeak.chain_attempt a WHERE a.hash = p_hash AND a.transaction_id = p_id);
  RETURN CASE WHEN FOUND THEN 'ok' ELSE 'stale' END;
END $$;

-- Its block is proved not to be on the chain: it waits again. Codes: ok, stale.
CREATE FUNCTION offpeak.unmine_transaction(p_id uuid)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE offpeak.chain_transaction t SET state = 'signed', mined_hash = NULL, mined_number = NULL, mined_block = NULL
   WHERE t.id = p_id AND t.state = 'mined';
  RETURN CASE WHEN FOUND THEN 'ok' ELSE 'stale' END;
END $$;

-- It is final: done, or reverted with what is known of why. Codes: ok, stale.
CREATE FUNCTION offpeak.finish_transaction(p_id uuid, p_state text, p_error text)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF p_state NOT IN ('done', 'reverted') THEN RAISE EXCEPTION 'no end: %', p_state; END IF;
  UPDATE offpeak.chain_transaction t SET state = p_state, last_error = p_error, ended_at = clock_timestamp()
   WHERE t.id = p_id AND t.state = 'mined';
  RETURN CASE WHEN FOUND THEN 'ok' ELSE 'stale' END;
END $$;

-- It cannot go now; try again at p_not_before. Signed ones only keep the note.
CREATE FUNCTION offpeak.postpone_transaction(p_id uuid, p_error text, p_not_before timestamptz)
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE offpeak.chain_transaction t
     SET tries = t.tries + 1, last_error = left(p_error, 500),
         not_before = CASE t.state WHEN 'queued' THEN p_not_before END
   WHERE t.id = p_id AND t.state IN ('queued', 'signed', 'mined')
$$;

-- Nobody wants it any more and nobody has seen it: only a queued one. Codes: ok, stale.
CREATE FUNCTION offpeak.cancel_transaction(p_id uuid)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE offpeak.chain_transaction t SET state = 'cancelled', ended_at = clock_timestamp()
   WHERE t.id = p_id AND t.state = 'queued';
  RETURN CASE WHEN FOUND THEN 'ok' ELSE 'stale' END;
END $$;

-- Follow a transaction no more: its key is gone, or a stranger used its nonce. Codes: ok, stale (ended).
CREATE FUNCTION offpeak.abandon_transaction(p_id uuid, p_because text)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE offpeak.chain_transaction t
     SET state = CASE t.state WHEN 'queued' THEN 'cancelled' ELSE 'abandoned' END,
         last_error = left(p_because, 500), ended_at = clock_timestamp()
   WHERE t.id = p_id AND t.state IN ('queued', 'signed', 'mined');
  RETURN CASE WHEN FOUND THEN 'ok' ELSE 'stale' END;
END $$;
