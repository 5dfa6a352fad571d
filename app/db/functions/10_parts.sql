-- Parts shared by the functions below. Each expects its caller to hold the locks it names,
-- taken in the one order: wallets by id, then deployments by id.

-- The id of an account follows from what it is, so nobody has to look it up.
CREATE OR REPLACE FUNCTION offpeak._account_id(p_kind text, p_owner text, p_asset text)
RETURNS uuid LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT encode(substring(sha256(convert_to(p_kind || '|' || p_owner || '|' || p_asset, 'UTF8')) for 16), 'hex')::uuid
$$;

-- 32 random bytes from core functions only (two v4 UUIDs, 244 random bits, hashed).
CREATE OR REPLACE FUNCTION offpeak._random_salt()
RETURNS bytea LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
$$;

-- The best deployment with room: least loaded of the candidates, the caller's order breaking ties.
-- Callers hold the candidates' rows. Rules: architecture.md, "Capacity, load, placement".
CREATE OR REPLACE FUNCTION offpeak._place(
  p_candidates uuid[], p_release text, p_region text, p_ask bigint, p_until timestamptz, p_now timestamptz)
RETURNS offpeak.placement LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE r offpeak.placement;
BEGIN
  SELECT d.id, d.agent_id, s.replica, d.ask INTO r
    FROM unnest(p_candidates) WITH ORDINALITY AS c(id, place)
    JOIN offpeak.deployment d ON d.id = c.id
    JOIN offpeak.agent_session s ON s.agent_id = d.agent_id
   WHERE d.release = p_release AND d.region = p_region AND d.ask <= p_ask
     AND d.occupied < d.offered AND d.offer_until > p_until
     AND s.state = 'online' AND s.seen_at > p_now - interval '15 s'
   ORDER BY d.occupied::float8 / d.offered, c.place LIMIT 1;
  RETURN r;
END $$;

-- One capacity event per deployment: its state as it now is. Callers hold the rows.
CREATE OR REPLACE FUNCTION offpeak._note_capacity(p_deployments uuid[], p_now timestamptz)
RETURNS void LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
  INSERT INTO offpeak.capacity_event(deployment_id, release, region, at, offered, occupied)
  SELECT d.id, d.release, d.region, p_now,
         CASE WHEN s.state = 'offline' OR s.stale THEN 0 ELSE greatest(d.offered, d.occupied) END,
         CASE WHEN s.state = 'offline' OR s.stale THEN 0 ELSE d.occupied END
    FROM offpeak.deployment d JOIN offpeak.agent_session s ON s.agent_id = d.agent_id
   WHERE d.id = ANY(p_deployments)
$$;

-- End or half-end a lease. 'ending' keeps the slot occupied until the engine confirms or the agent
-- is declared dead. A paid lease accrues ask x min(slot time, cap) from fees to its supplier;
-- an unpaid one books its slot time at no cost. Returns false when the lease was over already.
CREATE OR REPLACE FUNCTION offpeak._end_lease(
  p_lease uuid, p_state text, p_reason text, p_kind text, p_cap_ms bigint, p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  l offpeak.lease; was text; v_ms bigint; v_pay bigint; v_asset text; v_supplier uuid; v_release text;
BEGIN
  SELECT x.state INTO was FROM offpeak.lease x WHERE x.id = p_lease FOR NO KEY UPDATE;
  IF was IS NULL OR was NOT IN ('active', 'ending') OR was = p_state THEN RETURN false; END IF;
  UPDATE offpeak.lease x
     SET state = p_state, reason = coalesce(p_reason, x.reason),
         ended_at = CASE WHEN p_state = 'ending' THEN NULL ELSE p_now END
   WHERE x.id = p_lease RETURNING * INTO l;
  IF p_state <> 'ending' THEN
    UPDATE offpeak.deployment d SET occupied = d.occupied - 1 WHERE d.id = l.deployment_id;
  END IF;
  IF was = 'active' THEN  -- booked once, when the work stops counting
    v_ms := least((extract(epoch FROM p_now - l.started_at) * 1000)::bigint, p_cap_ms);
    v_pay := CASE WHEN p_cap_ms IS NULL THEN 0 ELSE l.ask * v_ms / 1000 END;
    SELECT j.asset, j.release INTO v_asset, v_release FROM offpeak.job j WHERE j.id = l.job_id;
    INSERT INTO offpeak.cost_entry(lease_id, kind, release, amount, slot_ms, booked_at)
    VALUES (l.id, p_kind, v_release, v_pay, greatest(v_ms, 0), p_now);
    IF v_pay > 0 THEN
      SELECT a.supplier_id INTO v_supplier FROM offpeak.agent a WHERE a.id = l.agent_id;
      INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
      VALUES (l.id, 1, offpeak._account_id('fee', 'offpeak', v_asset),
              offpeak._account_id('supplier', v_supplier::text, v_asset), v_pay, v_asset, p_now);
    END IF;
  END IF;
  RETURN true;
END $$;

-- End a hold, the wallet's part of it and write the usage record's fields: exactly once, by the
-- primary key of hold_resolution. Callers hold the wallet's row and have ended the job.
CREATE OR REPLACE FUNCTION offpeak._resolve(
  j offpeak.job, p_kind text, p_charge bigint, p_outcome smallint, p_usage int[],
  p_response bytea, p_statement bytea, p_flags text[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_amount bigint; v_seq bigint; v_last uuid;
BEGIN
  SELECT h.amount INTO STRICT v_amount FROM offpeak.hold h WHERE h.id = j.id;
  INSERT INTO offpeak.hold_resolution(hold_id, amount, kind, charged, released, resolved_at)
  VALUES (j.id, v_amount, p_kind, p_charge, v_amount - p_charge, p_now);
  SELECT w.payer_seq + 1, w.last_record INTO STRICT v_seq, v_last
    FROM offpeak.wallet_balance w WHERE w.account_id = j.account_id;
  UPDATE offpeak.wallet_balance w
     SET available = w.available + v_amount - p_charge, held = w.held - v_amount,
         open_jobs = w.open_jobs - 1, payer_seq = v_seq, last_record = j.id
   WHERE w.account_id = j.account_id;
  IF p_charge > 0 THEN
    INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
    VALUES (j.id, 1, j.account_id, offpeak._account_id('fee', 'offpeak', j.asset), p_charge, j.asset, p_now);
  END IF;
  INSERT INTO offpeak.usage_record(
    record_id, account_id, payer_seq, previous_record, supplier_statement, input_tokens,
    cached_input_tokens, output_tokens, reasoning_tokens, held, charge, released, outcome,
    response_digest, salt, completed_at, include_by, flags)
  VALUES (j.id, j.account_id, v_seq, v_last, p_statement, p_usage[1], p_usage[2], p_usage[3], p_usage[4],
          v_amount, p_charge, v_amount - p_charge, p_outcome, p_response, offpeak._random_salt(),
          date_trunc('second', p_now), date_trunc('second', p_now) + interval '24 h', p_flags);
END $$;
