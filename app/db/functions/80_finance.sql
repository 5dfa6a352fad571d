-- Accounting periods, when each record and transfer is booked, and corrections.
--
-- WHEN A ROW IS BOOKED. At its own time (completed_at of a record, created_at of a transfer), or, when
-- it came too late for a period that was closed already, at the end of the latest period it missed,
-- which is where the next one starts. What has been booked in a closed period never changes.
--
-- Proof. Periods are closed one at a time, in order, under the sequencer's lock, so that no batch is
-- sealed meanwhile. Let P be closed by snapshot S, with closed_leaf = the next free place in the
-- sequence of records and closed_xid = xmin of S.
--  (1) Records. close_period refuses while a record that S sees, completed before P.ends_at, is not
--      sealed. So of the records completed before P.ends_at, those in S have a place below closed_leaf;
--      every other one commits after S, is sealed after S, and has a place from closed_leaf on, or none
--      yet. A place is given once and never changes. Hence "place < closed_leaf and completed_at <
--      P.ends_at" names the same rows for ever: those in S. All others are booked at P.ends_at or later.
--  (2) Transfers. Every transaction with xid < closed_xid had ended when S was taken, so it adds
--      nothing any more; every row of S created before P.ends_at has xid < closed_xid, or close_period
--      refuses. Hence "xid < closed_xid and created_at < P.ends_at" names the same rows for ever.
--  (3) A record, its charge and its accrual are written by one transaction. If S sees it, all are in P
--      by (1) and (2); if not, its place is from closed_leaf on and its xid is at least closed_xid, so
--      all are booked at P.ends_at or later, and by the same argument together in the same later period.
--      (completed_at is created_at cut to the second, and periods end on whole seconds.)
--  (4) closed_leaf and closed_xid never fall from one closed period to the next, so the latest period
--      that a row missed is the latest whose mark is not above the row's own.
-- Clocks are not part of it: a row whose time lies before P.ends_at because a clock went back is late
-- like any other.

DROP VIEW IF EXISTS offpeak.booked_record, offpeak.booked_transfer, offpeak.period_closing;

CREATE VIEW offpeak.booked_record AS
SELECT u.record_id,
       greatest(u.completed_at, (SELECT max(p.ends_at) FROM offpeak.accounting_period p
                                  WHERE p.closed_leaf <= coalesce(u.leaf_index, 9223372036854775807))) AS booked_at
  FROM offpeak.usage_record u;

CREATE VIEW offpeak.booked_transfer AS
SELECT t.ref, t.leg,
       greatest(t.created_at, (SELECT max(p.ends_at) FROM offpeak.accounting_period p
                                WHERE p.closed_xid <= t.xid)) AS booked_at,
       t.debit, t.credit, t.amount, t.asset, t.created_at
  FROM offpeak.transfer t;

-- Booked before p_at, for sums over a whole history, which then need no look at each row's period:
--   of a record    completed_at < p_at AND coalesce(leaf_index < mark, mark IS NULL), mark = leaf_mark(p_at)
--   of a transfer  created_at < p_at AND xid < xid_mark(p_at)
-- because a row is booked at p_at or later when its own time is, or when it missed a closed period that
-- ends at p_at or later; and who missed any of those missed the first of them (4).
CREATE FUNCTION offpeak.leaf_mark(p_at timestamptz)
RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT min(p.closed_leaf) FROM offpeak.accounting_period p WHERE p.ends_at >= p_at
$$;
CREATE FUNCTION offpeak.xid_mark(p_at timestamptz)
RETURNS xid8 LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT p.closed_xid FROM offpeak.accounting_period p
                    WHERE p.ends_at >= p_at AND p.state = 'closed' ORDER BY p.ends_at LIMIT 1),
                  '18446744073709551615'::xid8)
$$;

-- The closed periods with the marks of the next one: whoever came between the two missed this one last.
CREATE VIEW offpeak.period_closing AS
SELECT p.name, p.starts_at, p.ends_at, p.closed_leaf AS leaf, p.closed_xid AS xid,
       lead(p.closed_leaf) OVER later AS next_leaf, lead(p.closed_xid) OVER later AS next_xid
  FROM offpeak.accounting_period p WHERE p.state = 'closed' WINDOW later AS (ORDER BY p.ends_at);

-- The records booked in p_from <= booked_at < p_to: the same as the view says, by indexes. Those in
-- time by completed_at; those that came late by their place, between the marks of two closings; those
-- that have no place yet by the index of the unsealed. Plain SQL, so that the planner sees inside.
CREATE FUNCTION offpeak.booked_records(p_from timestamptz, p_to timestamptz)
RETURNS TABLE(record_id uuid, booked_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT u.record_id, u.completed_at FROM offpeak.usage_record u
   WHERE u.completed_at >= p_from AND u.completed_at < p_to
     AND NOT EXISTS (SELECT FROM offpeak.accounting_period p
                      WHERE p.closed_leaf <= coalesce(u.leaf_index, 9223372036854775807)
                        AND p.ends_at > u.completed_at)
  UNION ALL
  SELECT u.record_id, c.ends_at FROM offpeak.period_closing c
    JOIN offpeak.usage_record u ON u.leaf_index >= c.leaf
     AND u.leaf_index < coalesce(c.next_leaf, 9223372036854775807) AND u.completed_at < c.ends_at
   WHERE c.ends_at >= p_from AND c.ends_at < p_to
  UNION ALL
  SELECT u.record_id, c.ends_at FROM offpeak.period_closing c
    JOIN offpeak.usage_record u ON u.leaf_index IS NULL AND u.completed_at < c.ends_at
   WHERE c.next_leaf IS NULL AND c.ends_at >= p_from AND c.ends_at < p_to
$$;

-- The transfers booked in p_from <= booked_at < p_to, likewise: in time by created_at, late by xid.
CREATE FUNCTION offpeak.booked_transfers(p_from timestamptz, p_to timestamptz)
RETURNS TABLE(ref uuid, leg smallint, booked_at timestamptz, debit uuid, credit uuid, amount bigint, asset text,
              created_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT t.ref, t.leg, t.created_at, t.debit, t.credit, t.amount, t.asset, t.created_at FROM offpeak.transfer t
   WHERE t.created_at >= p_from AND t.created_at < p_to
     AND NOT EXISTS (SELECT FROM offpeak.accounting_period p
                      WHERE p.closed_xid <= t.xid AND p.ends_at > t.created_at)
  UNION ALL
  SELECT t.ref, t.leg, c.ends_at, t.debit, t.credit, t.amount, t.asset, t.created_at FROM offpeak.period_closing c
    JOIN offpeak.transfer t ON t.xid >= c.xid
     AND t.xid < coalesce(c.next_xid, '18446744073709551615'::xid8) AND t.created_at < c.ends_at
   WHERE c.ends_at >= p_from AND c.ends_at < p_to
$$;

-- The whole months: p_name is YYYY-MM. Codes: ok, not_over, closed, later_closed.
CREATE FUNCTION offpeak.soft_close_period(p_name text)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_start timestamptz; v_end timestamptz; v_state text;
BEGIN
  v_start := (p_name || '-01')::timestamp AT TIME ZONE 'UTC';
  v_end := ((p_name || '-01')::timestamp + interval '1 month') AT TIME ZONE 'UTC';
  IF clock_timestamp() < v_end THEN RETURN 'not_over'; END IF;
  PERFORM offpeak._lock_log();
  IF EXISTS (SELECT FROM offpeak.accounting_period p WHERE p.state = 'closed' AND p.ends_at > v_end) THEN
    RETURN 'later_closed';
  END IF;
  INSERT INTO offpeak.accounting_period AS p(name, starts_at, ends_at, state, soft_closed_at)
  VALUES (p_name, v_start, v_end, 'soft-closed', clock_timestamp())
  ON CONFLICT (name) DO UPDATE SET state = 'soft-closed', soft_closed_at = clock_timestamp()
   WHERE p.state = 'open';
  SELECT p.state INTO v_state FROM offpeak.accounting_period p WHERE p.name = p_name;
  RETURN CASE v_state WHEN 'closed' THEN 'closed' ELSE 'ok' END;
END $$;

-- Back from review. Codes: ok, closed, not_soft_closed.
CREATE FUNCTION offpeak.reopen_period(p_name text)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE offpeak.accounting_period p SET state = 'open', soft_closed_at = NULL
   WHERE p.name = p_name AND p.state = 'soft-closed';
  IF FOUND THEN RETURN 'ok'; END IF;
  RETURN CASE WHEN EXISTS (SELECT FROM offpeak.accounting_period p WHERE p.name = p_name AND p.state = 'closed')
              THEN 'closed' ELSE 'not_soft_closed' END;
END $$;

-- Close a month for good. Codes, with how many rows stand in the way: ok (closed now or before),
-- not_soft_closed, earlier_open (rows booked before this month, after the last closed one; first 1,000),
-- unsealed (records), in_flight (transfers that a transaction still running could accompany).
CREATE FUNCTION offpeak.close_period(p_name text)
RETURNS TABLE(code text, n bigint) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v offpeak.accounting_period; v_open_from timestamptz; s record;
BEGIN
  PERFORM offpeak._lock_log();
  SELECT * INTO v FROM offpeak.accounting_period p WHERE p.name = p_name FOR UPDATE;
  IF v.state = 'closed' THEN RETURN QUERY SELECT 'ok', 0::bigint; RETURN; END IF;
  IF v.state IS DISTINCT FROM 'soft-closed' THEN RETURN QUERY SELECT 'not_soft_closed', 0::bigint; RETURN; END IF;
  SELECT coalesce(max(p.ends_at), '-infinity') INTO v_open_from FROM offpeak.accounting_period p WHERE p.state = 'closed';
  -- one statement, hence one snapshot: what the proof above calls S
  SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin,
         coalesce((SELECT b."end" FROM offpeak.receipt_batch b ORDER BY b.number DESC LIMIT 1), 0) AS leaf,
         (SELECT count(*) FROM offpeak.usage_record u
           WHERE u.leaf_index IS NULL AND u.completed_at < v.ends_at) AS unsealed,
         (SELECT count(*) FROM offpeak.transfer t
           WHERE t.xid >= pg_snapshot_xmin(pg_current_snapshot()) AND t.created_at < v.ends_at) AS in_flight,
         (SELECT count(*) FROM (SELECT FROM offpeak.booked_records(v_open_from, v.starts_at) LIMIT 1000) x)
         + (SELECT count(*) FROM (SELECT FROM offpeak.booked_transfers(v_open_from, v.starts_at) LIMIT 1000) x)
         AS earlier
    INTO s;
  IF s.earlier > 0 THEN RETURN QUERY SELECT 'earlier_open', s.earlier; RETURN; END IF;
  IF s.unsealed > 0 THEN RETURN QUERY SELECT 'unsealed', s.unsealed; RETURN; END IF;
  IF s.in_flight > 0 THEN RETURN QUERY SELECT 'in_flight', s.in_flight; RETURN; END IF;
  UPDATE offpeak.accounting_period p
     SET state = 'closed', closed_at = clock_timestamp(), closed_leaf = s.leaf, closed_xid = s.xmin
   WHERE p.name = p_name;
  RETURN QUERY SELECT 'ok', 0::bigint;
END $$;

-- Charge less for what a record charged: the difference goes back from fees to the wallet, and a record
-- of its own says so, the wallet's next. p_record is its new id. Only the last of a chain is corrected.
-- Codes: ok, duplicate (said before, word for word), conflict (this id says something else), unknown,
-- corrected_already, not_less.
CREATE FUNCTION offpeak.correct_record(p_record uuid, p_corrects uuid, p_charge bigint, p_because text)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_old offpeak.usage_record; v_wallet offpeak.wallet_balance; v_job uuid; v_asset text;
  v_now timestamptz; v_second timestamptz;
BEGIN
  SELECT * INTO v_old FROM offpeak.usage_record u WHERE u.record_id = p_corrects;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  SELECT * INTO STRICT v_wallet FROM offpeak.wallet_balance w WHERE w.account_id = v_old.account_id FOR NO KEY UPDATE;
  IF EXISTS (SELECT FROM offpeak.correction c JOIN offpeak.usage_record u ON u.record_id = c.record_id
              WHERE c.record_id = p_record AND c.corrects = p_corrects AND u.charge = p_charge
                AND c.because = p_because) THEN
    RETURN 'duplicate';
  END IF;
  IF p_record = '00000000-0000-0000-0000-000000000000'  -- in a signed record that says: no record
     OR EXISTS (SELECT FROM offpeak.transfer t WHERE t.ref = p_record)
     OR EXISTS (SELECT FROM offpeak.hold h WHERE h.id = p_record)
     OR EXISTS (SELECT FROM offpeak.usage_record u WHERE u.record_id = p_record) THEN
    RETURN 'conflict';
  END IF;
  IF EXISTS (SELECT FROM offpeak.correction c WHERE c.corrects = p_corrects) THEN RETURN 'corrected_already'; END IF;
  IF p_charge < 0 OR p_charge >= v_old.charge THEN RETURN 'not_less'; END IF;

  v_now := clock_timestamp();
  v_second := date_trunc('second', v_now);
  SELECT coalesce((SELECT c.job_id FROM offpeak.correction c WHERE c.record_id = p_corrects), p_corrects) INTO v_job;
  SELECT a.asset INTO STRICT v_asset FROM offpeak.account a WHERE a.id = v_old.account_id;
  INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
  VALUES (p_record, 1, offpeak._account_id('fee', 'offpeak', v_asset), v_old.account_id, v_old.charge - p_charge,
          v_asset, v_now);
  INSERT INTO offpeak.usage_record(
    record_id, account_id, payer_seq, previous_record, supplier_statement, input_tokens, cached_input_tokens,
    output_tokens, reasoning_tokens, held, charge, released, outcome, response_digest, salt, completed_at,
    include_by, flags)
  VALUES (p_record, v_old.account_id, v_wallet.payer_seq + 1, v_wallet.last_record, v_old.supplier_statement,
          v_old.input_tokens, v_old.cached_input_tokens, v_old.output_tokens, v_old.reasoning_tokens, v_old.charge,
          p_charge, v_old.charge - p_charge, 4, v_old.response_digest, offpeak._random_salt(), v_second,
          v_second + interval '24 h', '{}');
  INSERT INTO offpeak.correction(record_id, corrects, job_id, because, made_at)
  VALUES (p_record, p_corrects, v_job, p_because, v_now);
  UPDATE offpeak.wallet_balance w
     SET available = w.available + v_old.charge - p_charge, payer_seq = w.payer_seq + 1, last_record = p_record
   WHERE w.account_id = v_old.account_id;
  RETURN 'ok';
END $$;
