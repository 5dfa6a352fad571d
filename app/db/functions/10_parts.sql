-- Parts shared by the functions below. Each expects its caller to hold the locks it names, taken in
-- the one order: wallets by id, then deployments by id.
--
-- All are set-based: Postgres parses a table's CHECK constraints anew for each statement, so one
-- statement for 200 rows costs a fraction of 200 statements (`make bench`, ledger rows).

-- The id of an account follows from what it is, so nobody has to look it up.
CREATE FUNCTION offpeak._account_id(p_kind text, p_owner text, p_asset text)
RETURNS uuid LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT encode(substring(sha256(convert_to(p_kind || '|' || p_owner || '|' || p_asset, 'UTF8')) for 16), 'hex')::uuid
$$;

-- 32 random bytes from core functions only (two v4 UUIDs, 244 random bits, hashed).
CREATE FUNCTION offpeak._random_salt()
RETURNS bytea LANGUAGE sql VOLATILE AS $$
  SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
$$;

-- How long an agent counts as fresh after it was last heard; `app.capacity.placement.FRESH` is the same.
CREATE FUNCTION offpeak._fresh_for()
RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '15 s' $$;

-- Those of the deployments that may take work now, with what a job must fit: the one check behind
-- accepting, moving and queued jobs. Callers hold the rows.
-- Rules: architecture.md, "Capacity, load, placement".
CREATE FUNCTION offpeak._open_deployments(p_ids uuid[], p_now timestamptz)
RETURNS TABLE(id uuid, agent_id uuid, replica text, ask bigint, room int, until timestamptz, release text, region text)
LANGUAGE sql STABLE AS $$
  SELECT d.id, d.agent_id, s.replica, d.ask, d.offered - d.occupied, d.offer_until, d.release, d.region
    FROM offpeak.deployment d JOIN offpeak.agent_session s ON s.agent_id = d.agent_id
    JOIN offpeak.agent a ON a.id = d.agent_id
   WHERE d.id = ANY(p_ids) AND d.occupied < d.offered
     AND s.state = 'online' AND s.seen_at > p_now - offpeak._fresh_for()
     AND (a.resting_until IS NULL OR a.resting_until <= p_now)
$$;

-- The first of the candidates that has room now, fresh, cheap and long enough.
-- Callers hold the candidates' rows.
CREATE FUNCTION offpeak._place(
  p_candidates uuid[], p_release text, p_region text, p_ask bigint, p_until timestamptz, p_now timestamptz)
RETURNS offpeak.placement LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE r offpeak.placement;
BEGIN
  SELECT d.id, d.agent_id, d.replica, d.ask INTO r
    FROM offpeak._open_deployments(p_candidates, p_now) d
   WHERE d.release = p_release AND d.region = p_region AND d.ask <= p_ask AND d.until > p_until
   ORDER BY array_position(p_candidates, d.id) LIMIT 1;
  RETURN r;
END $$;

-- One capacity event per deployment: its state as it now is. Callers hold the rows.
CREATE FUNCTION offpeak._note_capacity(p_deployments uuid[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  INSERT INTO offpeak.capacity_event(deployment_id, release, region, at, offered, occupied)
  SELECT d.id, d.release, d.region, p_now,
         CASE WHEN s.state = 'offline' OR s.stale THEN 0 ELSE greatest(d.offered, d.occupied) END,
         CASE WHEN s.state = 'offline' OR s.stale THEN 0 ELSE d.occupied END
    FROM offpeak.deployment d JOIN offpeak.agent_session s ON s.agent_id = d.agent_id
   WHERE d.id = ANY(p_deployments);
END $$;

-- End or half-end leases, at most once each per call. 'ending' keeps the slot occupied until the
-- engine confirms or the agent is declared dead. The first end of an active lease books its slot
-- time: ask x min(time, cap) from fees to its supplier, or nothing where the cap is NULL. All attempts
-- of a job together never earn more than its hold.
-- Callers hold the leases' deployments. Returns how many changed.
CREATE FUNCTION offpeak._end_leases(
  p_lease uuid[], p_state text[], p_reason text[], p_cap_ms bigint[], p_kind text, p_now timestamptz)
RETURNS int LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE n int; v_touched uuid[];
BEGIN
  WITH item AS (
    SELECT l.id, l.state AS was, u.state AS next, u.reason, l.deployment_id, l.agent_id, j.asset, j.release,
           greatest(least((extract(epoch FROM p_now - l.started_at) * 1000)::bigint, u.cap_ms,
                          CASE WHEN u.cap_ms IS NOT NULL
                               THEN trunc((h.amount - coalesce(e.amount, 0)) * 1000.0 / l.ask) END), 0)::bigint AS slot_ms,
           CASE WHEN u.cap_ms IS NULL THEN 0 ELSE l.ask END AS ask
      FROM unnest(p_lease, p_state, p_reason, p_cap_ms) AS u(id, state, reason, cap_ms)
      JOIN offpeak.lease l ON l.id = u.id JOIN offpeak.job j ON j.id = l.job_id
      JOIN offpeak.hold h ON h.id = j.id
      LEFT JOIN LATERAL (
        SELECT sum(c.amount) AS amount FROM offpeak.lease x JOIN offpeak.cost_entry c ON c.lease_id = x.id
         WHERE x.job_id = l.job_id AND l.attempt > 1) e ON true
     WHERE l.state IN ('active', 'ending') AND l.state <> u.state),
  ended AS (
    UPDATE offpeak.lease l
       SET state = i.next, reason = coalesce(i.reason, l.reason),
           ended_at = CASE WHEN i.next = 'ending' THEN NULL ELSE p_now END
      FROM item i WHERE l.id = i.id),
  freed AS (
    UPDATE offpeak.deployment d
       SET occupied = d.occupied - f.slots,
           served_at = CASE WHEN p_kind = 'served' THEN p_now ELSE d.served_at END
      FROM (SELECT i.deployment_id, count(*)::int AS slots FROM item i
             WHERE i.next <> 'ending' GROUP BY 1) f
     WHERE d.id = f.deployment_id),
  booked AS (
    INSERT INTO offpeak.cost_entry(lease_id, kind, release, amount, slot_ms, booked_at)
    SELECT i.id, p_kind, i.release, i.ask * i.slot_ms / 1000, i.slot_ms, p_now
      FROM item i WHERE i.was = 'active'),
  opened AS (  -- a supplier's account in this asset, should it be the first of it
    INSERT INTO offpeak.account(id, owner, asset, kind)
    SELECT DISTINCT offpeak._account_id('supplier', a.supplier_id::text, i.asset), a.supplier_id::text, i.asset,
           'supplier'
      FROM item i JOIN offpeak.agent a ON a.id = i.agent_id
     WHERE i.was = 'active' AND i.ask * i.slot_ms >= 1000
    ON CONFLICT DO NOTHING),
  accrued AS (
    INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
    SELECT i.id, 1, offpeak._account_id('fee', 'offpeak', i.asset),
           offpeak._account_id('supplier', a.supplier_id::text, i.asset), i.ask * i.slot_ms / 1000,
           i.asset, p_now
      FROM item i JOIN offpeak.agent a ON a.id = i.agent_id
     WHERE i.was = 'active' AND i.ask * i.slot_ms >= 1000)
  SELECT count(*), array_agg(DISTINCT i.deployment_id) INTO n, v_touched FROM item i;
  IF n > 0 THEN PERFORM offpeak._note_capacity(v_touched, p_now); END IF;
  RETURN n;
END $$;

-- End holds, the wallets' part of them, and write the usage records' fields: once each, by the
-- primary key of hold_resolution. A wallet's records are numbered and linked in the items' order.
-- Callers hold the wallets, pass each job once, and end the jobs. p_usage is flattened: input,
-- cached input, output, reasoning tokens of item i at 4i-3 .. 4i.
CREATE FUNCTION offpeak._resolve_holds(
  p_job uuid[], p_kind text[], p_charge bigint[], p_outcome smallint[], p_usage int[],
  p_response bytea[], p_statement bytea[], p_flagged boolean[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_second timestamptz := date_trunc('second', p_now); n int;
BEGIN
  WITH item AS (
    SELECT u.*, j.account_id, j.asset, h.amount,
           w.payer_seq + row_number() OVER mine AS seq,
           coalesce(lag(u.job_id) OVER mine, w.last_record) AS previous
      FROM unnest(p_job, p_kind, p_charge, p_outcome, p_response, p_statement, p_flagged)
           WITH ORDINALITY AS u(job_id, kind, charge, outcome, response, statement, flagged, ord)
      JOIN offpeak.job j ON j.id = u.job_id
      JOIN offpeak.hold h ON h.id = u.job_id
      JOIN offpeak.wallet_balance w ON w.account_id = j.account_id
    WINDOW mine AS (PARTITION BY j.account_id ORDER BY u.ord)),
  resolved AS (
    INSERT INTO offpeak.hold_resolution(hold_id, amount, kind, charged, released, resolved_at)
    SELECT i.job_id, i.amount, i.kind, i.charge, i.amount - i.charge, p_now FROM item i),
  charged AS (
    INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
    SELECT i.job_id, 1, i.account_id, offpeak._account_id('fee', 'offpeak', i.asset), i.charge, i.asset, p_now
      FROM item i WHERE i.charge > 0),
  recorded AS (
    INSERT INTO offpeak.usage_record(
      record_id, account_id, payer_seq, previous_record, supplier_statement, input_tokens,
      cached_input_tokens, output_tokens, reasoning_tokens, held, charge, released, outcome,
      response_digest, salt, completed_at, include_by, flags)
    SELECT i.job_id, i.account_id, i.seq, i.previous, i.statement, p_usage[4 * i.ord - 3],
           p_usage[4 * i.ord - 2], p_usage[4 * i.ord - 1], p_usage[4 * i.ord], i.amount, i.charge,
           i.amount - i.charge, i.outcome, i.response, offpeak._random_salt(), v_second,
           v_second + interval '24 h',
           CASE WHEN i.flagged THEN ARRAY['output-recount'] ELSE '{}'::text[] END
      FROM item i),
  moved AS (
    UPDATE offpeak.wallet_balance w
       SET available = w.available + s.back, held = w.held - s.amount, open_jobs = w.open_jobs - s.jobs,
           payer_seq = s.seq, last_record = s.last
      FROM (SELECT i.account_id, sum(i.amount - i.charge)::bigint AS back, sum(i.amount)::bigint AS amount,
                   count(*)::int AS jobs, max(i.seq) AS seq,
                   (array_agg(i.job_id ORDER BY i.ord DESC))[1] AS last
              FROM item i GROUP BY 1) s
     WHERE w.account_id = s.account_id)
  SELECT count(*) INTO n FROM item;
  IF n <> cardinality(p_job) THEN
    RAISE EXCEPTION '% of % jobs have no hold or wallet', cardinality(p_job) - n, cardinality(p_job);
  END IF;
END $$;
