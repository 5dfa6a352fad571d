-- Ending jobs: settle (charged or delivered), end (failed, cancelled), expire.
-- All three take the wallets of their jobs by id, then the deployments of their leases by id.

CREATE OR REPLACE FUNCTION offpeak._lock_for_end(p_jobs uuid[], p_leases uuid[])
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  PERFORM FROM offpeak.wallet_balance w
    WHERE w.account_id IN (SELECT j.account_id FROM offpeak.job j WHERE j.id = ANY(p_jobs))
    ORDER BY w.account_id FOR NO KEY UPDATE;
  PERFORM FROM offpeak.deployment d
    WHERE d.id IN (SELECT l.deployment_id FROM offpeak.lease l WHERE l.id = ANY(p_leases)
                   UNION SELECT l.deployment_id FROM offpeak.job j JOIN offpeak.lease l ON l.id = j.lease_id
                          WHERE j.id = ANY(p_jobs))
    ORDER BY d.id FOR NO KEY UPDATE;
END $$;

-- Settle delivered results. Counts only for the lease that is active, from the agent that holds it;
-- anything else (late, wrong fence, twice) is 'stale' or 'duplicate' and changes nothing.
-- p_usage is flattened: input, cached input, output, reasoning tokens of item i at 4i-3 .. 4i.
-- Codes: ok, duplicate, stale, over_hold.
CREATE OR REPLACE FUNCTION offpeak.settle_many(
  p_job uuid[], p_lease uuid[], p_agent uuid[], p_charge bigint[], p_outcome smallint[], p_usage int[],
  p_finish text[], p_result bytea[], p_response bytea[], p_statement_digest bytea[], p_statement bytea[],
  p_statement_signature bytea[], p_cap_ms bigint[], p_flagged boolean[])
RETURNS SETOF offpeak.end_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  i int; r offpeak.end_outcome; j offpeak.job; l offpeak.lease; v_now timestamptz;
  v_touched uuid[] := '{}';
BEGIN
  PERFORM offpeak._lock_for_end(p_job, p_lease);
  v_now := clock_timestamp();
  FOR i IN 1 .. cardinality(p_job) LOOP
    r := ROW(i, 'stale', p_job[i]);
    SELECT * INTO l FROM offpeak.lease x WHERE x.id = p_lease[i] AND x.agent_id = p_agent[i];
    SELECT * INTO j FROM offpeak.job x WHERE x.id = p_job[i] AND x.id = l.job_id;
    IF l.state = 'active' AND j.lease_id = l.id AND j.state IN ('accepted', 'running') THEN
      IF p_charge[i] > (SELECT h.amount FROM offpeak.hold h WHERE h.id = j.id) OR p_charge[i] < 0 THEN
        r.code := 'over_hold'; RETURN NEXT r; CONTINUE;
      END IF;
      UPDATE offpeak.job x
         SET state = CASE WHEN p_outcome[i] = 3 THEN 'cancelled' ELSE 'completed' END, lease_id = NULL,
             ended_at = v_now, finish = p_finish[i], result = p_result[i]
       WHERE x.id = j.id;
      UPDATE offpeak.lease x SET statement = p_statement[i], statement_signature = p_statement_signature[i]
       WHERE x.id = l.id;
      PERFORM offpeak._end_lease(l.id, 'done', NULL, 'served', p_cap_ms[i], v_now);
      PERFORM offpeak._resolve(j, CASE WHEN p_charge[i] > 0 THEN 'settled' ELSE 'released' END,
        p_charge[i], p_outcome[i], p_usage[4 * i - 3 : 4 * i], p_response[i], p_statement_digest[i],
        CASE WHEN p_flagged[i] THEN ARRAY['output-recount'] ELSE '{}'::text[] END, v_now);
      v_touched := v_touched || l.deployment_id;
      r.code := 'ok';
    ELSIF j.state IN ('completed', 'cancelled') AND l.state = 'done' THEN
      r.code := 'duplicate';
    END IF;
    RETURN NEXT r;
  END LOOP;
  IF v_touched <> '{}' THEN PERFORM offpeak._note_capacity(v_touched, v_now); END IF;
END $$;

-- End jobs without a result: hold released, slot returned (or 'ending'), zero-charge record.
-- p_lease NULL means "whatever the job holds now"; otherwise the job must still be under that lease.
-- p_cap_ms NULL: the supplier's fault, unpaid. Codes: ok, stale.
CREATE OR REPLACE FUNCTION offpeak.end_many(
  p_job uuid[], p_lease uuid[], p_state text[], p_code text[], p_detail text[], p_lease_state text[],
  p_cap_ms bigint[])
RETURNS SETOF offpeak.end_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  i int; r offpeak.end_outcome; j offpeak.job; v_now timestamptz; v_deployment uuid; v_touched uuid[] := '{}';
  zero CONSTANT bytea := decode(repeat('00', 32), 'hex');
BEGIN
  PERFORM offpeak._lock_for_end(p_job, p_lease);
  v_now := clock_timestamp();
  FOR i IN 1 .. cardinality(p_job) LOOP
    r := ROW(i, 'stale', p_job[i]);
    SELECT * INTO j FROM offpeak.job x
     WHERE x.id = p_job[i] AND x.state IN ('queued', 'accepted', 'running')
       AND (p_lease[i] IS NULL OR x.lease_id = p_lease[i]) FOR NO KEY UPDATE;
    IF FOUND THEN
      UPDATE offpeak.job x
         SET state = p_state[i], lease_id = NULL, ended_at = v_now, queued_at = NULL,
             failure_code = p_code[i], failure_detail = p_detail[i]
       WHERE x.id = j.id;
      IF j.lease_id IS NOT NULL THEN
        PERFORM offpeak._end_lease(j.lease_id, p_lease_state[i], p_code[i], 'failed_work', p_cap_ms[i], v_now);
        SELECT l.deployment_id INTO v_deployment FROM offpeak.lease l WHERE l.id = j.lease_id;
        v_touched := v_touched || v_deployment;
      END IF;
      PERFORM offpeak._resolve(j, CASE WHEN p_state[i] = 'expired' THEN 'expired' ELSE 'released' END, 0,
        CASE WHEN p_state[i] = 'cancelled' THEN 3 ELSE 2 END::smallint,
        ARRAY[j.input_tokens, 0, 0, 0], zero, zero, '{}', v_now);
      r.code := 'ok';
    END IF;
    RETURN NEXT r;
  END LOOP;
  IF v_touched <> '{}' THEN PERFORM offpeak._note_capacity(v_touched, v_now); END IF;
END $$;

-- The sweeper: jobs past their deadline (plus 2 s for results under way) end with hold and lease.
-- Wallets that someone else is settling are skipped and met again at the next sweep.
CREATE OR REPLACE FUNCTION offpeak.expire_due(p_limit int)
RETURNS SETOF offpeak.end_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_jobs uuid[]; v_accounts uuid[]; v_due timestamptz := clock_timestamp() - interval '2 s';
BEGIN
  SELECT array_agg(j.account_id) INTO v_accounts FROM (
    SELECT x.account_id FROM offpeak.job x
     WHERE x.state IN ('queued', 'accepted', 'running') AND x.deadline_at < v_due
     ORDER BY x.deadline_at LIMIT p_limit) j;
  IF v_accounts IS NULL THEN RETURN; END IF;
  SELECT array_agg(w.account_id) INTO v_accounts FROM (
    SELECT x.account_id FROM offpeak.wallet_balance x WHERE x.account_id = ANY(v_accounts)
     ORDER BY x.account_id FOR NO KEY UPDATE SKIP LOCKED) w;
  SELECT array_agg(j.id) INTO v_jobs FROM (
    SELECT x.id FROM offpeak.job x
     WHERE x.state IN ('queued', 'accepted', 'running') AND x.deadline_at < v_due
       AND x.account_id = ANY(v_accounts) ORDER BY x.deadline_at LIMIT p_limit) j;
  IF v_jobs IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM offpeak.end_many(
    v_jobs, array_fill(NULL::uuid, ARRAY[cardinality(v_jobs)]),
    array_fill('expired'::text, ARRAY[cardinality(v_jobs)]),
    array_fill('deadline-passed'::text, ARRAY[cardinality(v_jobs)]),
    array_fill('the job did not finish before its deadline'::text, ARRAY[cardinality(v_jobs)]),
    array_fill('ending'::text, ARRAY[cardinality(v_jobs)]),
    array_fill(NULL::bigint, ARRAY[cardinality(v_jobs)]));
END $$;
