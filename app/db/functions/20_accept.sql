-- Accepting: authorization + hold + lease + job for each item, together or not at all.
--
-- Locks every wallet of the call by id, then every candidate deployment by id, and only then
-- decides; so plain reads below are reads of locked rows. Idempotency comes before every other
-- check: a replay gets its first job even after expiry. Refusals store nothing.
CREATE OR REPLACE FUNCTION offpeak.accept_many(
  p_job uuid[], p_lease uuid[], p_account uuid[], p_payer text[], p_amount bigint[], p_asset text,
  p_auth_digest bytea[], p_nonce bytea[], p_quote_digest bytea[], p_request_digest bytea[],
  p_message bytea[], p_signature bytea[], p_quote bytea[], p_quote_signature bytea[],
  p_valid_after timestamptz[], p_valid_until timestamptz[], p_expires timestamptz[],
  p_release text[], p_region text[], p_revision bytea[], p_input_tokens int[], p_max_output int[],
  p_input_rate bigint[], p_output_rate bigint[], p_per_request bigint[], p_ask bigint[],
  p_run_seconds int[], p_request bytea[], p_candidates text[], p_max_open int, p_retention interval)
RETURNS SETOF offpeak.accept_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  i int; r offpeak.accept_outcome; old offpeak.request_authorization; w offpeak.wallet_balance;
  v_now timestamptz; v_place offpeak.placement; v_candidates uuid[]; v_text text := '';
  v_touched uuid[] := '{}'; v_halted boolean;
BEGIN
  PERFORM FROM offpeak.wallet_balance x WHERE x.account_id = ANY(p_account)
    ORDER BY x.account_id FOR NO KEY UPDATE;
  PERFORM FROM offpeak.deployment d
    WHERE d.id IN (SELECT unnest(c::uuid[]) FROM (SELECT DISTINCT unnest(p_candidates)) AS t(c))
    ORDER BY d.id FOR NO KEY UPDATE;
  v_now := clock_timestamp();
  v_halted := EXISTS (SELECT FROM offpeak.ledger_halt x WHERE x.cleared_at IS NULL);

  FOR i IN 1 .. cardinality(p_job) LOOP
    r := ROW(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

    SELECT * INTO old FROM offpeak.request_authorization a
      WHERE a.quote_digest = p_quote_digest[i] AND a.account_id = p_account[i];
    IF FOUND THEN
      SELECT j.id, j.lease_id INTO r.job_id, r.lease_id
        FROM offpeak.job j WHERE j.authorization_digest = old.digest;
      r.code := CASE WHEN old.request_digest = p_request_digest[i] THEN 'duplicate' ELSE 'quote_used' END;
      RETURN NEXT r; CONTINUE;
    END IF;
    IF EXISTS (SELECT FROM offpeak.request_authorization a
                WHERE a.nonce = p_nonce[i] AND a.account_id = p_account[i]) THEN
      r.code := 'nonce_used'; RETURN NEXT r; CONTINUE;
    END IF;

    r.code := CASE
      WHEN v_halted THEN 'halted'
      WHEN p_expires[i] <= v_now THEN 'quote_expired'
      WHEN p_valid_until[i] <= v_now THEN 'authorization_expired'
      WHEN p_valid_after[i] - interval '30 s' > v_now THEN 'authorization_not_yet_valid'
    END;
    IF r.code IS NOT NULL THEN RETURN NEXT r; CONTINUE; END IF;

    SELECT * INTO w FROM offpeak.wallet_balance x WHERE x.account_id = p_account[i];
    r.available := coalesce(w.available, 0); r.held := coalesce(w.held, 0);
    r.code := CASE
      WHEN r.available + r.held < p_amount[i] THEN 'insufficient_funds'
      WHEN r.available < p_amount[i] THEN 'funds_on_hold'
      WHEN w.open_jobs >= p_max_open THEN 'too_many_open_jobs'
    END;
    IF r.code IS NOT NULL THEN RETURN NEXT r; CONTINUE; END IF;

    IF p_candidates[i] <> v_text OR v_candidates IS NULL THEN
      v_text := p_candidates[i]; v_candidates := v_text::uuid[];
    END IF;
    r.deadline_at := v_now + make_interval(secs => p_run_seconds[i]);
    v_place := NULL;
    -- jobs that lost their slot wait ahead of new ones
    IF NOT EXISTS (SELECT FROM offpeak.job j WHERE j.state = 'queued'
                    AND j.release = p_release[i] AND j.region = p_region[i]) THEN
      v_place := offpeak._place(v_candidates, p_release[i], p_region[i], p_ask[i], r.deadline_at, v_now);
    END IF;
    IF v_place.deployment_id IS NULL THEN
      r.deadline_at := NULL; r.code := 'no_slot'; RETURN NEXT r; CONTINUE;
    END IF;

    UPDATE offpeak.wallet_balance x
       SET available = x.available - p_amount[i], held = x.held + p_amount[i], open_jobs = x.open_jobs + 1
     WHERE x.account_id = p_account[i] AND x.available >= p_amount[i];
    IF NOT FOUND THEN RAISE EXCEPTION 'wallet % changed under its lock', p_account[i]; END IF;
    UPDATE offpeak.deployment d SET occupied = d.occupied + 1
     WHERE d.id = v_place.deployment_id AND d.occupied < d.offered;
    IF NOT FOUND THEN RAISE EXCEPTION 'deployment % changed under its lock', v_place.deployment_id; END IF;

    INSERT INTO offpeak.request_authorization(
      digest, account_id, payer, nonce, quote_digest, request_digest, message, signature, quote, quote_signature)
    VALUES (p_auth_digest[i], p_account[i], p_payer[i], p_nonce[i], p_quote_digest[i],
            p_request_digest[i], p_message[i], p_signature[i], p_quote[i], p_quote_signature[i]);
    INSERT INTO offpeak.job(
      id, account_id, authorization_digest, kind, state, release, region, lease_id, asset, input_tokens,
      max_output_tokens, input_rate, output_rate, per_request, ask_ceiling, model_revision, run_seconds,
      accepted_at, deadline_at, request, content_until)
    VALUES (p_job[i], p_account[i], p_auth_digest[i], 'interactive', 'accepted', p_release[i], p_region[i],
            p_lease[i], p_asset, p_input_tokens[i], p_max_output[i], p_input_rate[i], p_output_rate[i],
            p_per_request[i], p_ask[i], p_revision[i], p_run_seconds[i], v_now, r.deadline_at,
            p_request[i], v_now + p_retention);
    INSERT INTO offpeak.hold(id, account_id, amount, created_at, expires_at)
    VALUES (p_job[i], p_account[i], p_amount[i], v_now, r.deadline_at + interval '60 s');
    INSERT INTO offpeak.lease(id, job_id, deployment_id, agent_id, attempt, state, started_at, ends_at, ask)
    VALUES (p_lease[i], p_job[i], v_place.deployment_id, v_place.agent_id, 1, 'active', v_now,
            r.deadline_at, v_place.ask);

    v_touched := v_touched || v_place.deployment_id;
    r.code := 'ok'; r.job_id := p_job[i]; r.lease_id := p_lease[i]; r.agent_id := v_place.agent_id;
    r.deployment_id := v_place.deployment_id; r.replica := v_place.replica;
    RETURN NEXT r;
  END LOOP;
  IF v_touched <> '{}' THEN PERFORM offpeak._note_capacity(v_touched, v_now); END IF;
END $$;
