-- Events of the contracts: stored once each, and booked when their depth is reached.
-- Helpers and locks: 85_treasury.sql.

-- Store what was seen on the canonical chain. An event that a reorganization had taken away and that
-- is back counts as new again, as it is told now. Returns how many are new or back.
CREATE FUNCTION offpeak.record_events(
  p_chain bigint, p_number bigint[], p_block bytea[], p_tx bytea[], p_log int[], p_mined_at timestamptz[],
  p_kind text[], p_payer text[], p_amount numeric[], p_ref bytea[], p_extra jsonb[])
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE n int;
BEGIN
  INSERT INTO offpeak.chain_event AS e(
    id, chain_id, block_number, block_hash, tx_hash, log_index, mined_at, kind, payer, amount, ref, extra,
    state, seen_at)
  SELECT DISTINCT ON (u.tx, u.log, u.block) offpeak._event_id(p_chain, u.block, u.tx, u.log), p_chain, u.number,
         u.block, u.tx, u.log, u.mined_at, u.kind, lower(u.payer), u.amount, u.ref, u.extra, 'seen', clock_timestamp()
    FROM unnest(p_number, p_block, p_tx, p_log, p_mined_at, p_kind, p_payer, p_amount, p_ref, p_extra)
         AS u(number, block, tx, log, mined_at, kind, payer, amount, ref, extra)
  ON CONFLICT (id) DO UPDATE SET state = 'seen', booked_at = NULL, seen_at = clock_timestamp(), kind = EXCLUDED.kind,
     payer = EXCLUDED.payer, amount = EXCLUDED.amount, ref = EXCLUDED.ref, extra = EXCLUDED.extra
     WHERE e.state = 'orphaned';
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- An event's block is proved not to be on the chain. What was booked of it is undone: a deposit as far
-- as the money is there, the rest the wallet owes; an exit's funds go back. Nothing else is booked
-- before it is final, so anything else means that finality failed: accepting stops.
-- Codes: ok, duplicate, unknown, halted.
CREATE FUNCTION offpeak.orphan_event(p_event uuid)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE e offpeak.chain_event; v_wallet uuid; v_asset text; v_code text := 'ok';
BEGIN
  SELECT * INTO e FROM offpeak.chain_event x WHERE x.id = p_event FOR NO KEY UPDATE;
  IF e.id IS NULL THEN RETURN 'unknown'; END IF;
  IF e.state = 'orphaned' THEN RETURN 'duplicate'; END IF;
  IF e.state = 'booked' THEN
    CASE e.kind
      WHEN 'deposited' THEN
        -- the asset that it was booked in; a deposit of nothing has no transfer
        SELECT t.asset INTO v_asset FROM offpeak.transfer t WHERE t.ref = e.id LIMIT 1;
        IF v_asset IS NOT NULL THEN
          v_wallet := offpeak._lock_wallet(e.payer, v_asset);
          PERFORM offpeak._take(e.id, v_wallet, offpeak._house('treasury', v_asset),
                                offpeak._nano(e.amount), v_asset, false);
        END IF;
      WHEN 'exit-requested' THEN
        PERFORM offpeak._undo_exit(e.id);
      ELSE
        PERFORM offpeak.halt_ledger(format('a final %s event is gone from the chain: %s', e.kind, e.id));
        v_code := 'halted';
    END CASE;
  END IF;
  UPDATE offpeak.chain_event x SET state = 'orphaned', booked_at = NULL WHERE x.id = p_event;
  RETURN v_code;
END $$;

-- Book one seen event by its kind, once. Codes: ok, duplicate (booked before), orphaned, unknown,
-- too_large (nothing was booked, it stays seen: a person must look).
CREATE FUNCTION offpeak.book_event(p_event uuid, p_asset text)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE e offpeak.chain_event;
BEGIN
  SELECT * INTO e FROM offpeak.chain_event x WHERE x.id = p_event FOR NO KEY UPDATE;
  IF e.id IS NULL THEN RETURN 'unknown'; END IF;
  IF e.state <> 'seen' THEN RETURN CASE e.state WHEN 'booked' THEN 'duplicate' ELSE 'orphaned' END; END IF;
  CASE e.kind
    WHEN 'deposited' THEN PERFORM offpeak._book_deposit(e, p_asset);
    WHEN 'withdrawn' THEN PERFORM offpeak._book_withdrawn(e, p_asset);
    WHEN 'exit-requested' THEN PERFORM offpeak._book_exit_requested(e, p_asset);
    WHEN 'exit-reduced' THEN
      UPDATE offpeak.wallet_exit x SET amount = e.amount
       WHERE x.state = 'open' AND x.account_id = offpeak._account_id('wallet', e.payer, p_asset)
         AND offpeak._is_later(e, x.id);
      IF e.amount = 0 THEN PERFORM offpeak._book_exit_ended(e, p_asset, 'reduced'); END IF;
    WHEN 'exit-cancelled' THEN PERFORM offpeak._book_exit_ended(e, p_asset, 'cancelled');
    WHEN 'exit-finalized' THEN PERFORM offpeak._book_exit_ended(e, p_asset, 'finalized');
    WHEN 'plain-transfer' THEN
      PERFORM offpeak._post(e.id, offpeak._house('treasury', p_asset),
                            offpeak.open_account('suspense', e.payer, p_asset), offpeak._nano(e.amount), p_asset);
    WHEN 'unaccounted-credited' THEN PERFORM offpeak._book_claimed(e, p_asset);
    WHEN 'paid-out' THEN PERFORM offpeak._book_paid_out(e, p_asset);
    WHEN 'payout-failed' THEN
      UPDATE offpeak.payout p SET last_error = 'the token refused the transfer to ' || e.payer
       WHERE p.id = offpeak._uuid_of(e.ref) AND p.state = 'pending';
    WHEN 'spend-committed' THEN PERFORM offpeak._note_spend(e, p_asset);
    WHEN 'refunded' THEN PERFORM offpeak._note_spend(e, p_asset);
    WHEN 'published' THEN
      INSERT INTO offpeak.anchor(size, root, event_id, anchored_at)
      VALUES ((e.extra ->> 'size')::bigint, e.ref, e.id, clock_timestamp()) ON CONFLICT (size) DO NOTHING;
  END CASE;
  UPDATE offpeak.chain_event x SET state = 'booked', booked_at = clock_timestamp() WHERE x.id = p_event;
  RETURN 'ok';
EXCEPTION WHEN numeric_value_out_of_range THEN
  RETURN 'too_large';  -- with what is there already it is more than a wallet can hold; others go on
END $$;

-- A uuid from its 32-byte form, which is padded with zeros on the left.
CREATE FUNCTION offpeak._uuid_of(p_word bytea)
RETURNS uuid LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT encode(substring(p_word from 17 for 16), 'hex')::uuid
$$;

-- Whether an event stands later on the chain than another one.
CREATE FUNCTION offpeak._is_later(e offpeak.chain_event, p_other uuid)
RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ((e).block_number, (e).log_index) > (x.block_number, x.log_index)
    FROM offpeak.chain_event x WHERE x.id = p_other
$$;

CREATE FUNCTION offpeak._book_deposit(e offpeak.chain_event, p_asset text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM offpeak._give(e.id, offpeak._house('treasury', p_asset), offpeak._lock_wallet(e.payer, p_asset),
                        offpeak._nano(e.amount), p_asset);
END $$;

-- A withdrawal was paid. One that we do not know, or gave back already, is taken from the wallet all
-- the same: the tokens are gone. The second means that a proof was none, so accepting stops.
CREATE FUNCTION offpeak._book_withdrawn(e offpeak.chain_event, p_asset text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_wallet uuid := offpeak._lock_wallet(e.payer, p_asset); w offpeak.withdrawal;
  v_treasury uuid := offpeak._house('treasury', p_asset); v_fees uuid := offpeak._house('fee', p_asset);
  v_clearing uuid := offpeak._house('withdraw_clearing', p_asset);
  v_amount bigint := offpeak._nano(e.amount); v_fee bigint := offpeak._nano((e.extra ->> 'fee')::numeric);
BEGIN
  SELECT * INTO w FROM offpeak.withdrawal x WHERE x.digest = e.ref FOR NO KEY UPDATE;
  IF w.state = 'pending' AND w.account_id = v_wallet AND w.amount = v_amount THEN
    PERFORM offpeak._post(w.id, v_clearing, v_treasury, v_amount, p_asset);
    PERFORM offpeak._post(w.id, v_treasury, v_fees, v_fee, p_asset);  -- the fee stays in the contract
    UPDATE offpeak.withdrawal x SET state = 'paid', fee = v_fee, event_id = e.id, ended_at = clock_timestamp()
     WHERE x.id = w.id;
    RETURN;
  END IF;
  IF w.id IS NOT NULL THEN
    PERFORM offpeak.halt_ledger(format('withdrawal %s was paid but is %s here', w.id, w.state));
  END IF;
  PERFORM offpeak._take(e.id, v_wallet, v_treasury, v_amount, p_asset, false);
  PERFORM offpeak._post(e.id, v_treasury, v_fees, v_fee, p_asset);
END $$;

-- Set a wallet's available money aside for its exit and close the wallet. A second request replaces
-- the first, as it does on chain, and takes over what was set aside.
CREATE FUNCTION offpeak._book_exit_requested(e offpeak.chain_event, p_asset text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_wallet uuid := offpeak._lock_wallet(e.payer, p_asset); v_clearing uuid := offpeak._house('exit_clearing', p_asset);
  v_old offpeak.wallet_exit; v_wanted bigint := offpeak._nano(e.amount); v_more bigint; v_aside bigint;
BEGIN
  SELECT * INTO v_old FROM offpeak.wallet_exit x WHERE x.account_id = v_wallet AND x.state = 'open';
  IF v_old.id IS NOT NULL AND NOT offpeak._is_later(e, v_old.id) THEN
    -- seen late, after the request that replaced it
    INSERT INTO offpeak.wallet_exit(id, account_id, payer, amount, ready_at, state, clearing, replaced_by, ended_at)
    VALUES (e.id, v_wallet, e.payer, e.amount, to_timestamp((e.extra ->> 'ready_at')::bigint), 'replaced', 0,
            v_old.id, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET state = 'replaced', replaced_by = v_old.id, ended_at = clock_timestamp();
    RETURN;
  END IF;
  v_aside := coalesce(v_old.clearing, 0);
  IF v_old.id IS NOT NULL THEN
    UPDATE offpeak.wallet_exit x SET state = 'replaced', replaced_by = e.id, clearing = 0, ended_at = clock_timestamp()
     WHERE x.id = v_old.id;
  END IF;
  SELECT least(w.available, greatest(v_wanted - v_aside, 0)) INTO v_more
    FROM offpeak.wallet_balance w WHERE w.account_id = v_wallet;
  PERFORM offpeak._post(e.id, v_wallet, v_clearing, v_more, p_asset);
  UPDATE offpeak.wallet_balance w SET available = w.available - v_more, exiting = true
   WHERE w.account_id = v_wallet;
  INSERT INTO offpeak.wallet_exit(id, account_id, payer, amount, ready_at, state, clearing)
  VALUES (e.id, v_wallet, e.payer, e.amount, to_timestamp((e.extra ->> 'ready_at')::bigint), 'open', v_aside + v_more)
  ON CONFLICT (id) DO UPDATE SET state = 'open', clearing = v_aside + v_more, replaced_by = NULL, ended_at = NULL,
                                 amount = e.amount;
  -- what a smaller request leaves over goes back
  IF v_aside > v_wanted THEN
    UPDATE offpeak.wallet_exit x SET clearing = v_wanted WHERE x.id = e.id;
    PERFORM offpeak._give(e.id, v_clearing, v_wallet, v_aside - v_wanted, p_asset);
  END IF;
END $$;

-- Give back what is set aside for a wallet's open exit and open the wallet. Callers hold the wallet.
CREATE FUNCTION offpeak._end_exit(p_ref uuid, x offpeak.wallet_exit, p_state text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_asset text; v_back bigint;
BEGIN
  SELECT a.asset INTO v_asset FROM offpeak.account a WHERE a.id = x.account_id;
  SELECT y.clearing INTO v_back FROM offpeak.wallet_exit y WHERE y.id = x.id;
  UPDATE offpeak.wallet_exit y SET state = p_state, clearing = 0, ended_at = clock_timestamp() WHERE y.id = x.id;
  UPDATE offpeak.wallet_balance w SET exiting = false WHERE w.account_id = x.account_id;
  PERFORM offpeak._give(p_ref, offpeak._house('exit_clearing', v_asset), x.account_id, v_back, v_asset);
END $$;

-- An exit ended on chain. What left is taken from what was set aside, then from the wallet; the exit
-- that was open closes if it was asked for before this.
CREATE FUNCTION offpeak._book_exit_ended(e offpeak.chain_event, p_asset text, p_state text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_wallet uuid := offpeak._lock_wallet(e.payer, p_asset); x offpeak.wallet_exit;
BEGIN
  IF p_state = 'finalized' THEN
    PERFORM offpeak._take(e.id, v_wallet, offpeak._house('treasury', p_asset), offpeak._nano(e.amount), p_asset, true);
  END IF;
  SELECT * INTO x FROM offpeak.wallet_exit y WHERE y.account_id = v_wallet AND y.state = 'open';
  IF x.id IS NOT NULL AND offpeak._is_later(e, x.id) THEN
    PERFORM offpeak._end_exit(e.id, x, p_state);
  END IF;
END $$;

-- The request is gone from the chain. One that it had replaced is open again.
CREATE FUNCTION offpeak._undo_exit(p_event uuid)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE x offpeak.wallet_exit; v_old offpeak.wallet_exit;
BEGIN
  SELECT * INTO x FROM offpeak.wallet_exit y WHERE y.id = p_event;
  PERFORM FROM offpeak.wallet_balance w WHERE w.account_id = x.account_id FOR NO KEY UPDATE;
  SELECT * INTO x FROM offpeak.wallet_exit y WHERE y.id = p_event;
  SELECT * INTO v_old FROM offpeak.wallet_exit y WHERE y.replaced_by = p_event AND y.state = 'replaced'
    AND EXISTS (SELECT FROM offpeak.chain_event c WHERE c.id = y.id AND c.state = 'booked');
  IF x.state = 'open' AND v_old.id IS NOT NULL THEN
    UPDATE offpeak.wallet_exit y SET state = 'orphaned', clearing = 0, ended_at = clock_timestamp() WHERE y.id = x.id;
    UPDATE offpeak.wallet_exit y SET state = 'open', clearing = x.clearing, replaced_by = NULL, ended_at = NULL
     WHERE y.id = v_old.id;
  ELSIF x.state = 'open' THEN
    PERFORM offpeak._end_exit(p_event, x, 'orphaned');
  ELSE
    -- it was replaced in its turn: whoever replaced it now replaces what it had replaced
    UPDATE offpeak.wallet_exit y SET replaced_by = x.replaced_by WHERE y.id = v_old.id AND x.state = 'replaced';
    UPDATE offpeak.wallet_exit y SET state = 'orphaned', replaced_by = NULL WHERE y.id = x.id AND x.state = 'replaced';
  END IF;
END $$;

-- Exits that were not finalized in their time can be no more: give back what was set aside.
-- p_finalized_time is the time of a final block up to which every event is booked.
CREATE FUNCTION offpeak.lapse_exits(p_chain bigint, p_finalized_time timestamptz)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE x offpeak.wallet_exit; n int := 0; v_id uuid;
BEGIN
  FOR v_id IN SELECT y.id FROM offpeak.wallet_exit y JOIN offpeak.chain_event c ON c.id = y.id AND c.chain_id = p_chain
               WHERE y.state = 'open' AND y.ready_at + offpeak._exit_window() < p_finalized_time ORDER BY y.account_id LOOP
    SELECT * INTO x FROM offpeak.wallet_exit y WHERE y.id = v_id;
    PERFORM FROM offpeak.wallet_balance w WHERE w.account_id = x.account_id FOR NO KEY UPDATE;
    SELECT * INTO x FROM offpeak.wallet_exit y WHERE y.id = v_id AND y.state = 'open';
    IF x.id IS NOT NULL THEN
      PERFORM offpeak._end_exit(x.id, x, 'lapsed');
      n := n + 1;
    END IF;
  END LOOP;
  RETURN n;
END $$;

-- Tokens that were sent without a deposit have been credited on chain: from suspense to the wallet.
-- A credit that no claim asked for is booked from the beneficiary's own suspense, and accepting stops.
CREATE FUNCTION offpeak._book_claimed(e offpeak.chain_event, p_asset text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_wallet uuid := offpeak._lock_wallet(e.payer, p_asset); v_sender text;
BEGIN
  UPDATE offpeak.suspense_claim c SET state = 'credited', credited_at = clock_timestamp()
    FROM offpeak.chain_event t
   WHERE c.id = offpeak._uuid_of(e.ref) AND c.state = 'requested' AND t.id = c.event_id AND t.amount = e.amount
     AND c.payer = e.payer
  RETURNING t.payer INTO v_sender;
  IF v_sender IS NULL THEN
    PERFORM offpeak.halt_ledger(format('credited on chain without a claim: event %s', e.id));
  END IF;
  PERFORM offpeak._give(e.id, offpeak.open_account('suspense', coalesce(v_sender, e.payer), p_asset), v_wallet,
                        offpeak._nano(e.amount), p_asset);
END $$;

CREATE FUNCTION offpeak._book_paid_out(e offpeak.chain_event, p_asset text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_id uuid := offpeak._uuid_of(e.ref); v_from text := 'payout_clearing';
BEGIN
  UPDATE offpeak.payout p SET state = 'paid', paid_at = clock_timestamp(), last_error = NULL
   WHERE p.id = v_id AND p.state = 'pending' AND p.amount = offpeak._nano(e.amount) AND p.address = e.payer;
  IF NOT FOUND THEN  -- earned funds left without a payout of ours: they were fees
    PERFORM offpeak.halt_ledger(format('paid out on chain without a payout: event %s', e.id));
    v_from := 'fee'; v_id := e.id;
  END IF;
  PERFORM offpeak._post(v_id, offpeak._house(v_from, p_asset), offpeak._house('treasury', p_asset),
                        offpeak._nano(e.amount), p_asset);
END $$;

-- Remember what the contract says of a wallet's spend.
CREATE FUNCTION offpeak._note_spend(e offpeak.chain_event, p_asset text)
RETURNS void LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO offpeak.wallet_chain AS c(account_id, spent, refunded)
  VALUES (offpeak._lock_wallet((e).payer, p_asset),
          CASE (e).kind WHEN 'spend-committed' THEN (e).amount ELSE 0 END,
          CASE (e).kind WHEN 'refunded' THEN (e).amount ELSE 0 END)
  ON CONFLICT (account_id) DO UPDATE
    SET spent = CASE (e).kind WHEN 'spend-committed' THEN greatest(c.spent, (e).amount) ELSE c.spent END,
        refunded = c.refunded + CASE (e).kind WHEN 'refunded' THEN (e).amount ELSE 0 END
$$;

-- Let wallets that owe pay from what has become available meanwhile. Returns how many paid something.
CREATE FUNCTION offpeak.cover_receivables(p_limit int)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_wallet uuid; n int := 0;
BEGIN
  FOR v_wallet IN SELECT w.account_id FROM offpeak.wallet_balance w WHERE w.owed > 0 AND w.available > 0
                   ORDER BY w.account_id LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED LOOP
    IF offpeak._cover(gen_random_uuid(), v_wallet) > 0 THEN n := n + 1; END IF;
  END LOOP;
  RETURN n;
END $$;

-- Every event up to this final block is stored. Codes: ok, behind (the cursor is further already).
CREATE FUNCTION offpeak.set_cursor(p_chain bigint, p_number bigint, p_hash bytea)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO offpeak.chain_cursor AS c(chain_id, number, hash, moved_at)
  VALUES (p_chain, p_number, p_hash, clock_timestamp())
  ON CONFLICT (chain_id) DO UPDATE SET number = p_number, hash = p_hash, moved_at = clock_timestamp()
     WHERE c.number <= p_number;
  RETURN CASE WHEN FOUND THEN 'ok' ELSE 'behind' END;
END $$;
