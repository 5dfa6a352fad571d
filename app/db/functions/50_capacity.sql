-- Agents' sessions and their offers.

-- A new session: the epoch it gets is larger than any before, and chooses the live socket. It
-- offers nothing until it says so: what an earlier one offered may be of another name by now, and
-- would be sold beside it. NULL when the agent or its supplier may not serve.
CREATE FUNCTION offpeak.open_session(p_agent uuid, p_replica text, p_boot text)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_epoch bigint; v_deployments uuid[];
BEGIN
  PERFORM FROM offpeak.agent a JOIN offpeak.supplier s ON s.id = a.supplier_id
    WHERE a.id = p_agent AND a.state = 'authorized' AND s.state = 'authorized' FOR SHARE OF a, s;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT array_agg(x.id) INTO v_deployments FROM (
    SELECT d.id FROM offpeak.deployment d WHERE d.agent_id = p_agent ORDER BY d.id FOR NO KEY UPDATE) x;
  v_epoch := nextval('offpeak.session_epoch_seq');
  INSERT INTO offpeak.agent_session AS x(agent_id, epoch, state, replica, boot_id, seen_at)
  VALUES (p_agent, v_epoch, 'online', p_replica, p_boot, clock_timestamp())
  ON CONFLICT (agent_id) DO UPDATE
    SET epoch = v_epoch, state = 'online', replica = p_replica, boot_id = p_boot,
        seen_at = clock_timestamp(), stale = false
  WHERE x.epoch < v_epoch;
  IF FOUND AND v_deployments IS NOT NULL THEN
    UPDATE offpeak.deployment d SET offered = 0 WHERE d.id = ANY(v_deployments);
    PERFORM offpeak._note_capacity(v_deployments, clock_timestamp());
  END IF;
  RETURN v_epoch;
END $$;

-- The socket of this epoch is gone: offline at once, its offer withdrawn. False for an older epoch.
CREATE FUNCTION offpeak.close_session(p_agent uuid, p_epoch bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_deployments uuid[];
BEGIN
  SELECT array_agg(x.id) INTO v_deployments FROM (
    SELECT d.id FROM offpeak.deployment d WHERE d.agent_id = p_agent ORDER BY d.id FOR NO KEY UPDATE) x;
  UPDATE offpeak.agent_session s SET state = 'offline' WHERE s.agent_id = p_agent AND s.epoch = p_epoch;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE offpeak.deployment d SET offered = 0 WHERE d.id = ANY(v_deployments);
  PERFORM offpeak._note_capacity(v_deployments, clock_timestamp());
  RETURN true;
END $$;

-- Agents that may get no new work any more: their offers are withdrawn, what runs may finish.
CREATE FUNCTION offpeak.drain_sessions(p_agent uuid[])
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_drained uuid[]; v_deployments uuid[];
BEGIN
  PERFORM FROM offpeak.deployment d WHERE d.agent_id = ANY(p_agent) ORDER BY d.id FOR NO KEY UPDATE;
  WITH drained AS (
    UPDATE offpeak.agent_session s SET state = 'draining'
     WHERE s.agent_id IN (SELECT x.agent_id FROM offpeak.agent_session x
             WHERE x.agent_id = ANY(p_agent) AND x.state = 'online' ORDER BY x.agent_id FOR NO KEY UPDATE)
    RETURNING s.agent_id)
  SELECT array_agg(d.agent_id) INTO v_drained FROM drained d;
  WITH withdrawn AS (
    UPDATE offpeak.deployment d SET offered = 0 WHERE d.agent_id = ANY(v_drained) RETURNING d.id)
  SELECT array_agg(w.id) INTO v_deployments FROM withdrawn w;
  PERFORM offpeak._note_capacity(v_deployments, clock_timestamp());
  RETURN coalesce(cardinality(v_drained), 0);
END $$;

-- Agents that may get work again: their next CAPACITY counts.
CREATE FUNCTION offpeak.resume_sessions(p_agent uuid[])
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE offpeak.agent_session s SET state = 'online'
   WHERE s.agent_id IN (SELECT x.agent_id FROM offpeak.agent_session x
           WHERE x.agent_id = ANY(p_agent) AND x.state = 'draining' ORDER BY x.agent_id FOR NO KEY UPDATE)
$$;

-- An agent's CAPACITY message: what it offers now. Only the live session speaks; one that is being
-- drained offers nothing.
-- Returns the deployment's id, NULL for a session that is no longer the live one.
CREATE FUNCTION offpeak.offer_capacity(
  p_id uuid, p_agent uuid, p_epoch bigint, p_name text, p_release text, p_class text, p_region text,
  p_ask bigint, p_offered int, p_offer_until timestamptz, p_prefill int, p_decode int, p_gpu_ppm int)
RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_id uuid; v_state text; v_offered int;
BEGIN
  PERFORM FROM offpeak.deployment d WHERE d.agent_id = p_agent AND d.name = p_name FOR NO KEY UPDATE;
  SELECT s.state INTO v_state FROM offpeak.agent_session s
    WHERE s.agent_id = p_agent AND s.epoch = p_epoch AND s.state <> 'offline' FOR SHARE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  v_offered := CASE WHEN v_state = 'online' THEN p_offered ELSE 0 END;
  INSERT INTO offpeak.deployment AS d(
    id, agent_id, name, release, capacity_class, region, ask, offered, occupied, offer_until,
    prefill_tokens_per_second, decode_tokens_per_second, gpu_activity_ppm)
  VALUES (p_id, p_agent, p_name, p_release, p_class, p_region, p_ask, v_offered, 0, p_offer_until,
          p_prefill, p_decode, p_gpu_ppm)
  ON CONFLICT (agent_id, name) DO UPDATE
    SET release = p_release, capacity_class = p_class, region = p_region, ask = p_ask,
        offered = v_offered, offer_until = p_offer_until, prefill_tokens_per_second = p_prefill,
        decode_tokens_per_second = p_decode, gpu_activity_ppm = p_gpu_ppm
  RETURNING d.id INTO v_id;
  PERFORM offpeak._note_capacity(ARRAY[v_id], clock_timestamp());
  RETURN v_id;
END $$;

-- Heartbeats of all agents of one replica, in one statement. An agent that comes back from
-- staleness is counted again from when its deployments are locked; one that is marked stale while
-- this runs comes back at its next heartbeat.
CREATE FUNCTION offpeak.seen_many(p_agent uuid[], p_epoch bigint[], p_age_ms int[])
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_heard timestamptz := clock_timestamp(); v_back uuid[]; v_deployments uuid[];
BEGIN
  SELECT array_agg(s.agent_id) INTO v_back FROM offpeak.agent_session s
   WHERE s.agent_id = ANY(p_agent) AND s.stale AND s.state <> 'offline';
  IF v_back IS NOT NULL THEN
    SELECT array_agg(x.id) INTO v_deployments FROM (
      SELECT d.id FROM offpeak.deployment d WHERE d.agent_id = ANY(v_back) ORDER BY d.id FOR NO KEY UPDATE) x;
  END IF;
  UPDATE offpeak.agent_session s
     SET seen_at = greatest(s.seen_at, v_heard - make_interval(secs => x.age_ms / 1000.0)),
         stale = s.stale AND NOT (coalesce(s.agent_id = ANY(v_back), false)
                                  AND x.age_ms / 1000.0 < extract(epoch FROM offpeak._fresh_for()))
    FROM (SELECT * FROM unnest(p_agent, p_epoch, p_age_ms) AS u(agent_id, epoch, age_ms) ORDER BY 1) x
   WHERE s.agent_id = x.agent_id AND s.epoch = x.epoch;
  IF v_deployments IS NOT NULL THEN PERFORM offpeak._note_capacity(v_deployments, clock_timestamp()); END IF;
END $$;

-- Agents that are no longer fresh: offer and occupation leave the load together, dated to the end
-- of their freshness. What was noted of them since then is followed by their present state, so
-- that the last event of a silent agent's deployment never offers anything.
CREATE FUNCTION offpeak.mark_stale()
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_due timestamptz := clock_timestamp() - offpeak._fresh_for(); v_silent uuid[]; v_stale uuid[];
BEGIN
  SELECT array_agg(s.agent_id) INTO v_silent FROM offpeak.agent_session s
   WHERE s.state <> 'offline' AND NOT s.stale AND s.seen_at < v_due;
  IF v_silent IS NULL THEN RETURN 0; END IF;
  PERFORM FROM offpeak.deployment d WHERE d.agent_id = ANY(v_silent) ORDER BY d.id FOR NO KEY UPDATE;
  WITH marked AS (
    UPDATE offpeak.agent_session x SET stale = true
     WHERE x.agent_id IN (SELECT y.agent_id FROM offpeak.agent_session y
             WHERE y.agent_id = ANY(v_silent) AND y.state <> 'offline' AND NOT y.stale AND y.seen_at < v_due
             ORDER BY y.agent_id FOR NO KEY UPDATE SKIP LOCKED)
     RETURNING x.agent_id, x.seen_at),
  noted AS (
    INSERT INTO offpeak.capacity_event(deployment_id, release, region, at, offered, occupied)
    SELECT d.id, d.release, d.region, m.seen_at + offpeak._fresh_for(), 0, 0
      FROM marked m JOIN offpeak.deployment d ON d.agent_id = m.agent_id)
  SELECT array_agg(m.agent_id) INTO v_stale FROM marked m;
  PERFORM offpeak._note_capacity(ARRAY(
    SELECT d.id FROM offpeak.deployment d JOIN offpeak.agent_session s ON s.agent_id = d.agent_id
     WHERE d.agent_id = ANY(v_stale) AND EXISTS (SELECT FROM offpeak.capacity_event e
             WHERE e.deployment_id = d.id AND e.at > s.seen_at + offpeak._fresh_for())), clock_timestamp());
  RETURN coalesce(cardinality(v_stale), 0);
END $$;

-- The breaker. Three faults within 60 s with nothing served between them: the agent, whatever its
-- session, gets no new work for 60 s; for twice as long each time it happens again within 10 min of
-- the last rest, 10 min at most. Then it is tried again, so a lone agent is never shut out for good.
-- A flagged result is a fault that was served, and counts here for nothing. Callers hold the agents.
CREATE FUNCTION offpeak._rest_faulty(p_agent uuid[], p_lease uuid[])
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_now timestamptz := clock_timestamp();
BEGIN
  UPDATE offpeak.agent a
     SET fault_times = CASE WHEN x.rests IS NULL THEN x.times ELSE '{}' END,
         rests = coalesce(x.rests + 1, a.rests),
         resting_until = CASE WHEN x.rests IS NULL THEN a.resting_until
           ELSE v_now + least(interval '60 s' * 2 ^ x.rests, interval '10 min') END
    FROM (SELECT b.id, k.times, CASE
                   WHEN cardinality(k.times) < 3 THEN NULL
                   WHEN b.resting_until > v_now - interval '10 min' THEN least(b.rests, 10)
                   ELSE 0 END AS rests
            FROM (SELECT u.agent_id, count(*)::int AS n FROM unnest(p_agent, p_lease) AS u(agent_id, lease_id)
                    LEFT JOIN offpeak.lease l ON l.id = u.lease_id
                   WHERE l.state IS DISTINCT FROM 'done' GROUP BY 1) f
            JOIN offpeak.agent b ON b.id = f.agent_id
            CROSS JOIN LATERAL (SELECT ARRAY(
              SELECT t FROM unnest(b.fault_times) AS t
               WHERE t > v_now - interval '60 s' AND t > coalesce((
                 SELECT max(d.served_at) FROM offpeak.deployment d WHERE d.agent_id = b.id), '-infinity')
               ) || array_fill(v_now, ARRAY[f.n]) AS times) k
           WHERE b.resting_until IS NULL OR b.resting_until <= v_now) x
   WHERE a.id = x.id;
END $$;

-- Forget what no load, quote or record can need any more. Each deployment's last event stays: it
-- opens the window of a deployment at rest. Returns how many rows went.
CREATE FUNCTION offpeak.prune_market(p_keep interval, p_limit int)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE n int; m int; v_before timestamptz := clock_timestamp() - p_keep;
BEGIN
  DELETE FROM offpeak.capacity_event e WHERE e.id IN (
    SELECT x.id FROM offpeak.capacity_event x
     WHERE x.at < v_before AND EXISTS (SELECT FROM offpeak.capacity_event y
             WHERE y.deployment_id = x.deployment_id AND y.at > x.at AND y.at < v_before)
     ORDER BY x.id LIMIT p_limit FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS n = ROW_COUNT;
  DELETE FROM offpeak.price_point p USING (
    SELECT x.release, x.region, x.at FROM offpeak.price_point x WHERE x.at < v_before
     LIMIT p_limit FOR UPDATE SKIP LOCKED) o
   WHERE (p.release, p.region, p.at) = (o.release, o.region, o.at);
  GET DIAGNOSTICS m = ROW_COUNT;
  RETURN n + m;
END $$;
