-- Accepting: authorization + hold + lease + job for each item, together or not at all.
--
-- Locks every wallet of the call by id, then every candidate deployment by id; decides item by item
-- in memory on the locked figures; then writes each table once. Idempotency comes before every
-- other check: a replay gets its first job even after expiry. Refusals store nothing.
CREATE FUNCTION offpeak.accept_many(
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
  i int; k int; c int; r offpeak.accept_outcome; v_now timestamptz; v_halted boolean;
  v_candidates uuid[]; v_text text := ''; v_key bytea;
  -- the locked figures, as they stand after the items decided so far
  w_id uuid[]; w_available bigint[]; w_held bigint[]; w_open int[]; w_owed bigint[]; w_exiting boolean[];
  d_id uuid[]; d_agent uuid[]; d_replica text[]; d_ask bigint[]; d_room int[]; d_until timestamptz[];
  d_market text[];
  -- what earlier calls accepted, by item; what this call accepted, by key
  old_job uuid[]; old_lease uuid[]; old_request bytea[]; old_nonce boolean[];
  ok_quote bytea[] := '{}'; ok_nonce bytea[] := '{}';
  ok int[] := '{}'; ok_place int[] := '{}'; v_market text;
BEGIN
  SELECT array_agg(w.account_id), array_agg(w.available), array_agg(w.held), array_agg(w.open_jobs),
         array_agg(w.owed), array_agg(w.exiting)
    INTO w_id, w_available, w_held, w_open, w_owed, w_exiting
    FROM (SELECT * FROM offpeak.wallet_balance x WHERE x.account_id = ANY(p_account)
           ORDER BY x.account_id FOR NO KEY UPDATE) w;
  PERFORM FROM offpeak.deployment d
    WHERE d.id IN (SELECT unnest(t.c::uuid[]) FROM (SELECT DISTINCT unnest(p_candidates)) AS t(c))
    ORDER BY d.id FOR NO KEY UPDATE;
  v_now := clock_timestamp();
  v_halted := EXISTS (SELECT FROM offpeak.ledger_halt x WHERE x.cleared_at IS NULL);
  SELECT array_agg(d.id), array_agg(d.agent_id), array_agg(d.replica), array_agg(d.ask),
         array_agg(d.room), array_agg(d.until), array_agg(d.release || ' ' || d.region)
    INTO d_id, d_agent, d_replica, d_ask, d_room, d_until, d_market
    FROM offpeak._open_deployments(
      ARRAY(SELECT unnest(t.c::uuid[]) FROM (SELECT DISTINCT unnest(p_candidates)) AS t(c)), v_now) d
   -- jobs that lost their slot go first, on every deployment that could take them
   WHERE NOT EXISTS (SELECT FROM offpeak.job q
                      WHERE q.state = 'queued' AND q.release = d.release AND q.region = d.region
                        AND q.ask_ceiling >= d.ask AND q.deadline_at < d.until
                        AND d.agent_id <> ALL(q.failed_agents));
  SELECT array_agg(j.id ORDER BY u.ord), array_agg(j.lease_id ORDER BY u.ord),
         array_agg(q.request_digest ORDER BY u.ord),
         array_agg(EXISTS (SELECT FROM offpeak.request_authorization a
                            WHERE a.nonce = u.nonce AND a.account_id = u.account_id) ORDER BY u.ord)
    INTO old_job, old_lease, old_request, old_nonce
    FROM unnest(p_quote_digest, p_account, p_nonce) WITH ORDINALITY AS u(quote_digest, account_id, nonce, ord)
    LEFT JOIN offpeak.request_authorization q
           ON q.quote_digest = u.quote_digest AND q.account_id = u.account_id
    LEFT JOIN offpeak.job j ON j.authorization_digest = q.digest;

  FOR i IN 1 .. cardinality(p_job) LOOP
    r := ROW(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    -- replays, of earlier calls and within this one
    IF old_job[i] IS NOT NULL THEN
      r.code := CASE WHEN old_request[i] = p_request_digest[i] THEN 'duplicate' ELSE 'quote_used' END;
      r.job_id := old_job[i]; r.lease_id := old_lease[i];
      RETURN NEXT r; CONTINUE;
    END IF;
    k := array_position(ok_quote, uuid_send(p_account[i]) || p_quote_digest[i]);
    IF k IS NOT NULL THEN
      k := ok[k];
      r.code := CASE WHEN p_request_digest[k] = p_request_digest[i] THEN 'duplicate' ELSE 'quote_used' END;
      r.job_id := p_job[k]; r.lease_id := p_lease[k];
      RETURN NEXT r; CONTINUE;
    END IF;
    v_key := uuid_send(p_account[i]) || p_nonce[i];
    r.code := CASE
      WHEN old_nonce[i] OR array_position(ok_nonce, v_key) IS NOT NULL THEN 'nonce_used'
      WHEN v_halted THEN 'halted'
      WHEN p_expires[i] <= v_now THEN 'quote_expired'
      WHEN p_valid_until[i] <= v_now THEN 'authorization_expired'
      WHEN p_valid_after[i] - interval '30 s' > v_now THEN 'authorization_not_yet_valid'
    END;
    IF r.code IS NOT NULL THEN RETURN NEXT r; CONTINUE; END IF;
    -- funds
    k := array_position(w_id, p_account[i]);
    r.available := coalesce(w_available[k], 0); r.held := coalesce(w_held[k], 0);
    r.code := CASE
      WHEN w_exiting[k] THEN 'exit_open'
      WHEN w_owed[k] > 0 THEN 'wallet_owes'
      WHEN r.available + r.held < p_amount[i] THEN 'insufficient_funds'
      WHEN r.available < p_amount[i] THEN 'funds_on_hold'
      WHEN w_open[k] >= p_max_open THEN 'too_many_open_jobs'
    END;
    IF r.code IS NOT NULL THEN RETURN NEXT r; CONTINUE; END IF;
    -- a slot: the first candidate with room
    IF p_candidates[i] <> v_text OR v_candidates IS NULL THEN
      v_text := p_candidates[i]; v_candidates := v_text::uuid[];
    END IF;
    r.deadline_at := v_now + make_interval(secs => p_run_seconds[i]);
    v_market := p_release[i] || ' ' || p_region[i];
    k := NULL;
    FOR c IN 1 .. cardinality(v_candidates) LOOP
      k := array_position(d_id, v_candidates[c]);
      EXIT WHEN d_room[k] > 0 AND d_ask[k] <= p_ask[i] AND d_until[k] > r.deadline_at AND d_market[k] = v_market;
      k := NULL;
    END LOOP;
    IF k IS NULL THEN
      r.deadline_at := NULL; r.code := 'no_slot'; RETURN NEXT r; CONTINUE;
    END IF;
    -- both are there: take them
    d_room[k] := d_room[k] - 1;
    ok := ok || i; ok_place := ok_place || k;
    ok_quote := ok_quote || (uuid_send(p_account[i]) || p_quote_digest[i]); ok_nonce := ok_nonce || v_key;
    r.code := 'ok'; r.job_id := p_job[i]; r.lease_id := p_lease[i]; r.agent_id := d_agent[k];
    r.deployment_id := d_id[k]; r.replica := d_replica[k];
    k := array_position(w_id, p_account[i]);
    w_available[k] := w_available[k] - p_amount[i]; w_held[k] := w_held[k] + p_amount[i];
    w_open[k] := w_open[k] + 1;
    RETURN NEXT r;
  END LOOP;
  IF ok = '{}' THEN RETURN; END IF;

  UPDATE offpeak.wallet_balance w
     SET available = w.available - s.amount, held = w.held + s.amount, open_jobs = w.open_jobs + s.jobs
    FROM (SELECT p_account[o] AS account_id, sum(p_amount[o])::bigint AS amount, count(*)::int AS jobs
            FROM unnest(ok) AS o GROUP BY 1) s
   WHERE w.account_id = s.account_id AND w.available >= s.amount;
  GET DIAGNOSTICS k = ROW_COUNT;
  IF k <> (SELECT count(DISTINCT p_account[o]) FROM unnest(ok) AS o) THEN
    RAISE EXCEPTION 'a wallet changed under its lock';
  END IF;
  UPDATE offpeak.deployment d SET occupied = d.occupied + s.slots
    FROM (SELECT d_id[o] AS id, count(*)::int AS slots FROM unnest(ok_place) AS o GROUP BY 1) s
   WHERE d.id = s.id AND d.occupied + s.slots <= d.offered;
  GET DIAGNOSTICS k = ROW_COUNT;
  IF k <> (SELECT count(DISTINCT o) FROM unnest(ok_place) AS o) THEN
    RAISE EXCEPTION 'a deployment changed under its lock';
  END IF;

  INSERT INTO offpeak.request_authorization(
    digest, account_id, payer, nonce, quote_digest, request_digest, message, signature, quote, quote_signature)
  SELECT t.digest, p_account[o], t.payer, t.nonce, t.quote_digest, t.request_digest, t.message, t.signature,
         t.quote, t.quote_signature
    FROM unnest(ok) AS o JOIN unnest(p_auth_digest, p_payer, p_nonce, p_quote_digest, p_request_digest,
                                     p_message, p_signature, p_quote, p_quote_signature)
         WITH ORDINALITY AS t(digest, payer, nonce, quote_digest, request_digest, message, signature, quote,
                              quote_signature, ord) ON t.ord = o;
  INSERT INTO offpeak.job(
    id, account_id, authorization_digest, kind, state, release, region, lease_id, asset, input_tokens,
    max_output_tokens, input_rate, output_rate, per_request, ask_ceiling, model_revision, run_seconds,
    accepted_at, deadline_at, request, content_until)
  SELECT p_job[o], p_account[o], t.auth, 'interactive', 'accepted', t.release, t.region, p_lease[o], p_asset,
         p_input_tokens[o], p_max_output[o], p_input_rate[o], p_output_rate[o], p_per_request[o], p_ask[o],
         t.revision, p_run_seconds[o], v_now, v_now + make_interval(secs => p_run_seconds[o]), t.request,
         v_now + p_retention
    FROM unnest(ok) AS o JOIN unnest(p_auth_digest, p_release, p_region, p_revision, p_request)
         WITH ORDINALITY AS t(auth, release, region, revision, request, ord) ON t.ord = o;
  INSERT INTO offpeak.hold(id, account_id, amount, created_at, expires_at)
  SELECT p_job[o], p_account[o], p_amount[o], v_now, v_now + make_interval(secs => p_run_seconds[o] + 60)
    FROM unnest(ok) AS o;
  INSERT INTO offpeak.lease(id, job_id, deployment_id, agent_id, attempt, state, started_at, ends_at, ask)
  SELECT p_lease[o.i], p_job[o.i], d_id[o.k], d_agent[o.k], 1, 'active', v_now,
         v_now + make_interval(secs => p_run_seconds[o.i]), d_ask[o.k]
    FROM unnest(ok, ok_place) AS o(i, k);
  PERFORM offpeak._note_capacity((SELECT array_agg(DISTINCT d_id[o]) FROM unnest(ok_place) AS o), v_now);
END $$;
