-- Moving a job between slots without touching its money. Deployments are locked by id; no wallet
-- is taken here, so the one lock order (wallets, then deployments) holds.

-- End a lease and give its job another slot in one step. At most two faulted attempts and five
-- dispatches (architecture.md, "State machines"). An agent that failed the job is not tried again.
-- Codes: ok (new lease), queued (no slot now), exhausted (nothing changed; the caller ends the job), stale.
CREATE FUNCTION offpeak.reassign_many(
  p_lease uuid[], p_new_lease uuid[], p_reason text[], p_fault boolean[], p_lease_state text[],
  p_cap_ms bigint[], p_candidates text[])
RETURNS SETOF offpeak.reassign_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  i int; r offpeak.reassign_outcome; l offpeak.lease; j offpeak.job; v_now timestamptz;
  v_place offpeak.placement; v_candidates uuid[]; v_touched uuid[] := '{}';
BEGIN
  PERFORM FROM offpeak.deployment d
    WHERE d.id IN (SELECT unnest(c::uuid[]) FROM unnest(p_candidates) AS t(c)
                   UNION SELECT x.deployment_id FROM offpeak.lease x WHERE x.id = ANY(p_lease))
    ORDER BY d.id FOR NO KEY UPDATE;
  v_now := clock_timestamp();
  FOR i IN 1 .. cardinality(p_lease) LOOP
    r := ROW(i, 'stale', NULL, NULL, NULL, NULL);
    SELECT * INTO l FROM offpeak.lease x WHERE x.id = p_lease[i] AND x.state = 'active';
    SELECT * INTO j FROM offpeak.job x WHERE x.id = l.job_id AND x.lease_id = l.id;
    r.job_id := j.id;
    IF j.id IS NULL THEN RETURN NEXT r; CONTINUE; END IF;
    IF j.faults + p_fault[i]::int >= 2 OR j.dispatches >= 5 OR j.deadline_at <= v_now THEN
      r.code := 'exhausted'; RETURN NEXT r; CONTINUE;
    END IF;
    PERFORM offpeak._end_leases(ARRAY[l.id], ARRAY[p_lease_state[i]], ARRAY[p_reason[i]],
                                ARRAY[p_cap_ms[i]], 'failed_work', v_now);
    SELECT array_agg(d.id ORDER BY c.place) INTO v_candidates
      FROM unnest(p_candidates[i]::uuid[]) WITH ORDINALITY AS c(id, place) JOIN offpeak.deployment d USING (id)
     WHERE d.agent_id <> l.agent_id AND d.agent_id <> ALL(j.failed_agents);
    v_place := offpeak._place(v_candidates, j.release, j.region, j.ask_ceiling, j.deadline_at, v_now);
    UPDATE offpeak.job x
       SET faults = x.faults + p_fault[i]::int,
           failed_agents = CASE WHEN p_fault[i] THEN x.failed_agents || l.agent_id ELSE x.failed_agents END,
           state = 'queued', lease_id = NULL, queued_at = coalesce(x.queued_at, v_now)
     WHERE x.id = j.id;
    r.code := 'queued';
    IF v_place.deployment_id IS NOT NULL THEN
      PERFORM offpeak._take_slot(j.id, p_new_lease[i], v_place, v_now);
      v_touched := v_touched || v_place.deployment_id;
      r.code := 'ok'; r.lease_id := p_new_lease[i]; r.agent_id := v_place.agent_id; r.replica := v_place.replica;
    END IF;
    RETURN NEXT r;
  END LOOP;
  IF v_touched <> '{}' THEN PERFORM offpeak._note_capacity(v_touched, v_now); END IF;
END $$;

-- A queued job takes the slot that was found for it. Callers hold the deployment's row.
CREATE FUNCTION offpeak._take_slot(
  p_job uuid, p_lease uuid, p_place offpeak.placement, p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE j offpeak.job;
BEGIN
  UPDATE offpeak.deployment d SET occupied = d.occupied + 1
   WHERE d.id = p_place.deployment_id AND d.occupied < d.offered;
  IF NOT FOUND THEN RAISE EXCEPTION 'deployment % changed under its lock', p_place.deployment_id; END IF;
  UPDATE offpeak.job x
     SET state = 'accepted', lease_id = p_lease, queued_at = NULL, dispatches = x.dispatches + 1
   WHERE x.id = p_job RETURNING * INTO STRICT j;
  INSERT INTO offpeak.lease(id, job_id, deployment_id, agent_id, attempt, state, started_at, ends_at, ask)
  VALUES (p_lease, j.id, p_place.deployment_id, p_place.agent_id, j.dispatches, 'active', p_now,
          j.deadline_at, p_place.ask);
END $$;

-- Slots for waiting jobs, oldest first. Codes: ok, queued (still no slot), stale.
CREATE FUNCTION offpeak.place_queued_many(p_job uuid[], p_new_lease uuid[], p_candidates text[])
RETURNS SETOF offpeak.reassign_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  i int; r offpeak.reassign_outcome; j offpeak.job; v_now timestamptz; v_place offpeak.placement;
  v_candidates uuid[]; v_touched uuid[] := '{}';
BEGIN
  PERFORM FROM offpeak.deployment d
    WHERE d.id IN (SELECT unnest(c::uuid[]) FROM unnest(p_candidates) AS t(c))
    ORDER BY d.id FOR NO KEY UPDATE;
  v_now := clock_timestamp();
  FOR i IN 1 .. cardinality(p_job) LOOP
    r := ROW(i, 'stale', p_job[i], NULL, NULL, NULL);
    SELECT * INTO j FROM offpeak.job x WHERE x.id = p_job[i] AND x.state = 'queued' FOR NO KEY UPDATE;
    IF FOUND THEN
      SELECT array_agg(d.id ORDER BY c.place) INTO v_candidates
        FROM unnest(p_candidates[i]::uuid[]) WITH ORDINALITY AS c(id, place) JOIN offpeak.deployment d USING (id)
       WHERE d.agent_id <> ALL(j.failed_agents);
      v_place := offpeak._place(v_candidates, j.release, j.region, j.ask_ceiling, j.deadline_at, v_now);
      r.code := 'queued';
      IF v_place.deployment_id IS NOT NULL THEN
        PERFORM offpeak._take_slot(j.id, p_new_lease[i], v_place, v_now);
        v_touched := v_touched || v_place.deployment_id;
        r.code := 'ok'; r.lease_id := p_new_lease[i]; r.agent_id := v_place.agent_id; r.replica := v_place.replica;
      END IF;
    END IF;
    RETURN NEXT r;
  END LOOP;
  IF v_touched <> '{}' THEN PERFORM offpeak._note_capacity(v_touched, v_now); END IF;
END $$;

-- The engine has confirmed (done, reclaimed) or the agent is dead (lost): half-ended leases end and
-- their slots come back. Active leases are not touched. Returns how many ended.
CREATE FUNCTION offpeak.confirm_leases(p_lease uuid[], p_agent uuid[], p_state text[])
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_lease uuid[]; v_state text[]; n int;
BEGIN
  PERFORM FROM offpeak.deployment d
    WHERE d.id IN (SELECT l.deployment_id FROM offpeak.lease l WHERE l.id = ANY(p_lease))
    ORDER BY d.id FOR NO KEY UPDATE;
  SELECT array_agg(t.id), array_agg(t.state) INTO v_lease, v_state FROM (
    SELECT DISTINCT ON (l.id) l.id, u.state FROM unnest(p_lease, p_agent, p_state) AS u(id, agent_id, state)
      JOIN offpeak.lease l ON l.id = u.id AND l.agent_id = u.agent_id AND l.state = 'ending') t;
  IF v_lease IS NULL THEN RETURN 0; END IF;
  n := cardinality(v_lease);
  RETURN offpeak._end_leases(v_lease, v_state, array_fill(NULL::text, ARRAY[n]),
                             array_fill(NULL::bigint, ARRAY[n]), 'failed_work', clock_timestamp());
END $$;

-- The agent has accepted the work: accepted -> running, for the leases that are still active.
CREATE FUNCTION offpeak.mark_running(p_lease uuid[])
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE n int;
BEGIN
  UPDATE offpeak.job j SET state = 'running'
   WHERE j.id IN (SELECT x.id FROM offpeak.job x JOIN offpeak.lease l ON l.id = x.lease_id
                   WHERE l.id = ANY(p_lease) AND x.state = 'accepted' ORDER BY x.id
                   FOR NO KEY UPDATE OF x SKIP LOCKED);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- What an agent did wrong: counted against the agent (not its session), and its signed word, if it
-- gave one, kept on the lease as evidence. Only leases that are the agent's own keep evidence.
CREATE FUNCTION offpeak.note_faults(
  p_agent uuid[], p_lease uuid[], p_statement bytea[], p_signature bytea[])
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  UPDATE offpeak.lease l SET statement = x.statement, statement_signature = x.signature
    FROM (SELECT * FROM unnest(p_agent, p_lease, p_statement, p_signature)
            AS u(agent_id, lease_id, statement, signature) ORDER BY 2) x
   WHERE l.id = x.lease_id AND l.agent_id = x.agent_id AND l.statement IS NULL AND x.statement IS NOT NULL;
  UPDATE offpeak.agent a SET faults = a.faults + x.n
    FROM (SELECT u.agent_id, count(*)::int AS n FROM unnest(p_agent) AS u(agent_id)
           GROUP BY 1 ORDER BY 1) x
   WHERE a.id = x.agent_id;
  PERFORM offpeak._rest_faulty(p_agent, p_lease);
END $$;
