-- Ending jobs: settle (charged or delivered), end (failed, cancelled), expire.
-- All three take the wallets of their jobs by id, then the deployments of their leases by id.

-- Returns the deployments that are locked: a job that has moved to another one meanwhile must be left
-- alone, or a row would be locked out of order.
CREATE FUNCTION offpeak._lock_for_end(p_jobs uuid[], p_leases uuid[])
RETURNS uuid[] LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_locked uuid[];
BEGIN
  PERFORM FROM offpeak.wallet_balance w
    WHERE w.account_id IN (SELECT j.account_id FROM offpeak.job j WHERE j.id = ANY(p_jobs))
    ORDER BY w.account_id FOR NO KEY UPDATE;
  SELECT array_agg(x.id) INTO v_locked FROM (
    SELECT d.id FROM offpeak.deployment d
     WHERE d.id IN (SELECT l.deployment_id FROM offpeak.lease l WHERE l.id = ANY(p_leases)
                    UNION SELECT l.deployment_id FROM offpeak.job j JOIN offpeak.lease l ON l.id = j.lease_id
                           WHERE j.id = ANY(p_jobs))
     ORDER BY d.id FOR NO KEY UPDATE) x;
  RETURN v_locked;
END $$;

-- Settle delivered results. Counts only for the lease that is active, from the agent that holds it;
-- anything else (late, wrong fence, twice) is 'stale' or 'duplicate' and changes nothing.
-- p_usage is flattened as in _resolve_holds. Codes: ok, duplicate, stale, over_hold.
CREATE FUNCTION offpeak.settle_many(
  p_job uuid[], p_lease uuid[], p_agent uuid[], p_charge bigint[], p_outcome smallint[], p_usage int[],
  p_finish text[], p_result bytea[], p_response bytea[], p_statement_digest bytea[], p_statement bytea[],
  p_statement_signature bytea[], p_cap_ms bigint[], p_flagged boolean[])
RETURNS SETOF offpeak.end_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  v_now timestamptz; v_code text[]; ok int[]; v_usage int[];
  ok_job uuid[]; ok_lease uuid[]; ok_kind text[]; ok_charge bigint[]; ok_outcome smallint[];
  ok_response bytea[]; ok_statement bytea[]; ok_cap bigint[]; ok_flagged boolean[];
BEGIN
  PERFORM offpeak._lock_for_end(p_job, p_lease);
  v_now := clock_timestamp();
  SELECT array_agg(t.code ORDER BY t.ord) INTO v_code FROM (
    SELECT s.ord, CASE WHEN s.code = 'ok' AND row_number() OVER (PARTITION BY s.job_id, s.code ORDER BY s.ord) > 1
                       THEN 'duplicate' ELSE s.code END AS code
      FROM (SELECT u.ord, u.job_id, CASE
              WHEN l.state = 'active' AND j.lease_id = l.id AND j.state IN ('accepted', 'running')
              THEN CASE WHEN u.charge BETWEEN 0 AND h.amount THEN 'ok' ELSE 'over_hold' END
              WHEN l.state = 'done' AND j.state IN ('completed', 'cancelled') THEN 'duplicate'
              ELSE 'stale' END AS code
              FROM unnest(p_job, p_lease, p_agent, p_charge) WITH ORDINALITY AS u(job_id, lease_id, agent_id, charge, ord)
              LEFT JOIN offpeak.lease l ON l.id = u.lease_id AND l.agent_id = u.agent_id
              LEFT JOIN offpeak.job j ON j.id = u.job_id AND j.id = l.job_id
              LEFT JOIN offpeak.hold h ON h.id = j.id) s) t;
  SELECT array_agg(o ORDER BY o) INTO ok FROM generate_subscripts(v_code, 1) AS o WHERE v_code[o] = 'ok';

  IF ok IS NOT NULL THEN
    UPDATE offpeak.job j
       SET state = CASE WHEN t.outcome = 3 THEN 'cancelled' ELSE 'completed' END, lease_id = NULL,
           ended_at = v_now, finish = t.finish, result = t.result
      FROM unnest(ok) AS o JOIN unnest(p_job, p_outcome, p_finish, p_result)
           WITH ORDINALITY AS t(id, outcome, finish, result, ord) ON t.ord = o
     WHERE j.id = t.id;
    UPDATE offpeak.lease l SET statement = t.statement, statement_signature = t.signature
      FROM unnest(ok) AS o JOIN unnest(p_lease, p_statement, p_statement_signature)
           WITH ORDINALITY AS t(id, statement, signature, ord) ON t.ord = o
     WHERE l.id = t.id;
    SELECT array_agg(t.job_id ORDER BY o), array_agg(t.lease_id ORDER BY o), array_agg(t.charge ORDER BY o),
           array_agg(CASE WHEN t.charge > 0 THEN 'settled' ELSE 'released' END ORDER BY o),
           array_agg(t.outcome ORDER BY o), array_agg(t.response ORDER BY o),
           array_agg(t.statement ORDER BY o),
           -- what the supplier gets for the answer is never more than what the buyer pays for it
           array_agg(least(t.cap_ms, trunc(t.charge * 1000.0 / l.ask))::bigint ORDER BY o),
           array_agg(t.flagged ORDER BY o)
      INTO ok_job, ok_lease, ok_charge, ok_kind, ok_outcome, ok_response, ok_statement, ok_cap, ok_flagged
      FROM unnest(ok) AS o JOIN unnest(
             p_job, p_lease, p_charge, p_outcome, p_response, p_statement_digest, p_cap_ms, p_flagged)
           WITH ORDINALITY AS t(job_id, lease_id, charge, outcome, response, statement, cap_ms, flagged, ord)
           ON t.ord = o JOIN offpeak.lease l ON l.id = t.lease_id;
    SELECT array_agg(p_usage[4 * o - f] ORDER BY o, f DESC) INTO v_usage
      FROM unnest(ok) AS o CROSS JOIN generate_series(0, 3) AS f;
    PERFORM offpeak._end_leases(ok_lease, array_fill('done'::text, ARRAY[cardinality(ok)]),
                                array_fill(NULL::text, ARRAY[cardinality(ok)]), ok_cap, 'served', v_now);
    PERFORM offpeak._resolve_holds(ok_job, ok_kind, ok_charge, ok_outcome, v_usage, ok_response,
                                   ok_statement, ok_flagged, v_now);
  END IF;
  RETURN QUERY SELECT o, v_code[o], p_job[o] FROM generate_subscripts(p_job, 1) AS o;
END $$;

-- End jobs without a result: hold released, slot returned (or 'ending'), zero-charge record.
-- p_lease NULL means "whatever the job holds now"; otherwise the job must still be under that lease.
-- p_cap_ms NULL: the supplier's fault, unpaid. Codes: ok, stale (ended, or moved on meanwhile).
CREATE FUNCTION offpeak.end_many(
  p_job uuid[], p_lease uuid[], p_state text[], p_code text[], p_detail text[], p_lease_state text[],
  p_cap_ms bigint[])
RETURNS SETOF offpeak.end_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  v_now timestamptz; n int; ok int[]; ok_job uuid[]; v_usage int[];
  held int[]; v_lease uuid[]; v_locked uuid[];
  zero CONSTANT bytea := decode(repeat('00', 32), 'hex');
BEGIN
  v_locked := offpeak._lock_for_end(p_job, p_lease);
  v_now := clock_timestamp();
  -- the open jobs, each once, with the lease each is under
  SELECT array_agg(t.ord ORDER BY t.ord), array_agg(t.id ORDER BY t.ord),
         array_agg(t.ord ORDER BY t.ord) FILTER (WHERE t.lease_id IS NOT NULL),
         array_agg(t.lease_id ORDER BY t.ord) FILTER (WHERE t.lease_id IS NOT NULL)
    INTO ok, ok_job, held, v_lease
    FROM (SELECT DISTINCT ON (j.id) u.ord, j.id, j.lease_id
            FROM unnest(p_job, p_lease) WITH ORDINALITY AS u(job_id, lease_id, ord)
            JOIN (SELECT x.id, x.lease_id FROM offpeak.job x
                   WHERE x.id = ANY(p_job) AND x.state IN ('queued', 'accepted', 'running')
                   ORDER BY x.id FOR NO KEY UPDATE) j ON j.id = u.job_id
            LEFT JOIN offpeak.lease l ON l.id = j.lease_id
           WHERE (u.lease_id IS NULL OR j.lease_id = u.lease_id)
             AND (l.id IS NULL OR l.deployment_id = ANY(v_locked))
           ORDER BY j.id, u.ord) t;
  IF ok IS NOT NULL THEN
    n := cardinality(ok);
    UPDATE offpeak.job j
       SET state = p_state[o], lease_id = NULL, ended_at = v_now, queued_at = NULL,
           failure_code = p_code[o], failure_detail = p_detail[o]
      FROM unnest(ok) AS o WHERE j.id = p_job[o];
    IF held IS NOT NULL THEN
      PERFORM offpeak._end_leases(v_lease, (SELECT array_agg(p_lease_state[o]) FROM unnest(held) AS o),
        (SELECT array_agg(p_code[o]) FROM unnest(held) AS o),
        (SELECT array_agg(p_cap_ms[o]) FROM unnest(held) AS o), 'failed_work', v_now);
    END IF;
    SELECT array_agg(CASE f WHEN 1 THEN j.input_tokens ELSE 0 END ORDER BY o.place, f) INTO v_usage
      FROM unnest(ok_job) WITH ORDINALITY AS o(id, place) JOIN offpeak.job j ON j.id = o.id
      CROSS JOIN generate_series(1, 4) AS f;
    PERFORM offpeak._resolve_holds(ok_job,
      (SELECT array_agg(CASE p_state[o] WHEN 'expired' THEN 'expired' ELSE 'released' END) FROM unnest(ok) AS o),
      array_fill(0::bigint, ARRAY[n]),
      (SELECT array_agg(CASE p_state[o] WHEN 'cancelled' THEN 3 ELSE 2 END::smallint) FROM unnest(ok) AS o),
      v_usage, array_fill(zero, ARRAY[n]), array_fill(zero, ARRAY[n]), array_fill(false, ARRAY[n]), v_now);
  END IF;
  RETURN QUERY SELECT o, CASE WHEN o = ANY(ok) THEN 'ok' ELSE 'stale' END, p_job[o]
                 FROM generate_subscripts(p_job, 1) AS o;
END $$;

-- The sweeper: jobs past their deadline (plus 2 s for results under way) end with hold and lease.
-- Wallets that someone else is settling are skipped and met again at the next sweep.
-- A lease shorter than a third of run_seconds (a late second try) had less time than the work takes
-- at the priced speed: that is not its supplier's fault, and its slot time is paid.
CREATE FUNCTION offpeak.expire_due(p_limit int)
RETURNS SETOF offpeak.end_outcome LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  v_jobs uuid[]; v_cap bigint[]; v_accounts uuid[]; n int; v_due timestamptz := clock_timestamp() - interval '2 s';
BEGIN
  SELECT array_agg(j.account_id) INTO v_accounts FROM (
    SELECT x.account_id FROM offpeak.job x
     WHERE x.state IN ('queued', 'accepted', 'running') AND x.deadline_at < v_due
     ORDER BY x.deadline_at LIMIT p_limit) j;
  IF v_accounts IS NULL THEN RETURN; END IF;
  SELECT array_agg(w.account_id) INTO v_accounts FROM (
    SELECT x.account_id FROM offpeak.wallet_balance x WHERE x.account_id = ANY(v_accounts)
     ORDER BY x.account_id FOR NO KEY UPDATE SKIP LOCKED) w;
  SELECT array_agg(j.id), array_agg(j.cap_ms) INTO v_jobs, v_cap FROM (
    SELECT x.id, CASE WHEN extract(epoch FROM l.ends_at - l.started_at) * 3 < x.run_seconds
                      THEN x.run_seconds * 1000::bigint / 3 END AS cap_ms
      FROM offpeak.job x LEFT JOIN offpeak.lease l ON l.id = x.lease_id
     WHERE x.state IN ('queued', 'accepted', 'running') AND x.deadline_at < v_due
       AND x.account_id = ANY(v_accounts) ORDER BY x.deadline_at LIMIT p_limit) j;
  IF v_jobs IS NULL THEN RETURN; END IF;
  n := cardinality(v_jobs);
  RETURN QUERY SELECT * FROM offpeak.end_many(
    v_jobs, array_fill(NULL::uuid, ARRAY[n]), array_fill('expired'::text, ARRAY[n]),
    array_fill('deadline-passed'::text, ARRAY[n]),
    array_fill('the job did not finish before its deadline'::text, ARRAY[n]),
    array_fill('ending'::text, ARRAY[n]), v_cap);
END $$;
