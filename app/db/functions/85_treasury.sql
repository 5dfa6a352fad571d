-- Money between chain and ledger. A wallet's money on chain is booked from events of the treasury
-- contract, once each; nothing here asks the chain, so callers decide that an event's depth is reached.
--
-- The account `treasury` is the contract's tokens as we know them: it goes below zero by what came in.
-- Amounts of events are base units (10^-6), the ledger's nano (10^-9).
--
-- Locks: the event, then the wallet, then withdrawals and exits. Nobody who holds a wallet asks for an event.

-- The id of an event: the same log in the same block is the same row.
CREATE FUNCTION offpeak._event_id(p_chain bigint, p_block bytea, p_tx bytea, p_log int)
RETURNS uuid LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT encode(substring(sha256(int8send(p_chain) || p_block || p_tx || int4send(p_log)) for 16), 'hex')::uuid
$$;

-- Base units as nano; more than the ledger can hold is an error, never a smaller number.
CREATE FUNCTION offpeak._nano(p_base numeric)
RETURNS bigint LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT (p_base * 1000)::bigint
$$;

-- How long a ripe exit may be finalized; `EXIT_WINDOW` of the contract is the same.
CREATE FUNCTION offpeak._exit_window()
RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '72 h' $$;

-- Book one leg under p_ref, on its next free place. Nothing for an amount of 0.
CREATE FUNCTION offpeak._post(p_ref uuid, p_debit uuid, p_credit uuid, p_amount bigint, p_asset text)
RETURNS void LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
  SELECT p_ref, coalesce((SELECT max(t.leg) FROM offpeak.transfer t WHERE t.ref = p_ref), 0) + 1,
         p_debit, p_credit, p_amount, p_asset, clock_timestamp()
   WHERE p_amount > 0
$$;

CREATE FUNCTION offpeak._house(p_kind text, p_asset text)
RETURNS uuid LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT offpeak.open_account(p_kind, 'offpeak', p_asset)
$$;

-- Open a wallet with the accounts that its money can meet, lock it, and return its id.
CREATE FUNCTION offpeak._lock_wallet(p_payer text, p_asset text)
RETURNS uuid LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_id uuid;
BEGIN
  PERFORM offpeak._house('fee', p_asset);
  v_id := offpeak.open_account('wallet', p_payer, p_asset);
  PERFORM FROM offpeak.wallet_balance w WHERE w.account_id = v_id FOR NO KEY UPDATE;
  RETURN v_id;
END $$;

-- Let available money pay what the wallet owes. Callers hold the wallet. Returns what was covered.
CREATE FUNCTION offpeak._cover(p_ref uuid, p_wallet uuid)
RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_amount bigint; a offpeak.account;
BEGIN
  SELECT least(w.available, w.owed) INTO v_amount FROM offpeak.wallet_balance w WHERE w.account_id = p_wallet;
  IF coalesce(v_amount, 0) = 0 THEN RETURN 0; END IF;
  SELECT * INTO a FROM offpeak.account x WHERE x.id = p_wallet;
  PERFORM offpeak._post(p_ref, p_wallet, offpeak._account_id('receivable', a.owner, a.asset), v_amount, a.asset);
  UPDATE offpeak.wallet_balance w SET available = w.available - v_amount, owed = w.owed - v_amount
   WHERE w.account_id = p_wallet;
  RETURN v_amount;
END $$;

-- Give a wallet money and let it pay what it owes. Callers hold the wallet.
CREATE FUNCTION offpeak._give(p_ref uuid, p_from uuid, p_wallet uuid, p_amount bigint, p_asset text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM offpeak._post(p_ref, p_from, p_wallet, p_amount, p_asset);
  UPDATE offpeak.wallet_balance w SET available = w.available + p_amount WHERE w.account_id = p_wallet;
  PERFORM offpeak._cover(p_ref, p_wallet);
END $$;

-- Take money that is gone on chain from a wallet: from what is set aside for its exit, then from what
-- is available; the rest the wallet owes. Callers hold the wallet.
CREATE FUNCTION offpeak._take(p_ref uuid, p_wallet uuid, p_to uuid, p_amount bigint, p_asset text, p_exit_first boolean)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_rest bigint := p_amount; v_part bigint; v_payer text; v_step int;
BEGIN
  SELECT a.owner INTO v_payer FROM offpeak.account a WHERE a.id = p_wallet;
  FOR v_step IN 1 .. 2 LOOP
    IF (v_step = 1) = p_exit_first THEN
      UPDATE offpeak.wallet_exit e SET clearing = e.clearing - least(e.clearing, v_rest)
        FROM offpeak.wallet_exit before
       WHERE e.account_id = p_wallet AND e.state = 'open' AND before.id = e.id
      RETURNING before.clearing - e.clearing INTO v_part;
      PERFORM offpeak._post(p_ref, offpeak._house('exit_clearing', p_asset), p_to, coalesce(v_part, 0), p_asset);
    ELSE
      UPDATE offpeak.wallet_balance w SET available = w.available - least(w.available, v_rest)
        FROM offpeak.wallet_balance before
       WHERE w.account_id = p_wallet AND before.account_id = w.account_id
      RETURNING before.available - w.available INTO v_part;
      PERFORM offpeak._post(p_ref, p_wallet, p_to, coalesce(v_part, 0), p_asset);
    END IF;
    v_rest := v_rest - coalesce(v_part, 0);
  END LOOP;
  IF v_rest > 0 THEN
    PERFORM offpeak._post(p_ref, offpeak.open_account('receivable', v_payer, p_asset), p_to, v_rest, p_asset);
    UPDATE offpeak.wallet_balance w SET owed = w.owed + v_rest WHERE w.account_id = p_wallet;
  END IF;
END $$;

-- --- events ------------------------------------------------------------------------------------

-- Store what was seen on the canonical chain. An event that a reorganization had taken away and that
-- is back counts as new again. Returns how many are new or back.
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
  ON CONFLICT (id) DO UPDATE SET state = 'seen', booked_at = NULL, seen_at = clock_timestamp()
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

-- Book one seen event by its kind, once. Codes: ok, duplicate (booked before), orphaned, unknown.
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

-- --- withdrawals -------------------------------------------------------------------------------

-- Set money aside for a withdrawal that its wallet has signed (amounts in base units). The same signed
-- message gets its first answer. Codes: ok, duplicate, nonce_used, halted, exit_open, wallet_owes,
-- too_many_pending, insufficient_funds, funds_on_hold; refusals change nothing.
CREATE FUNCTION offpeak.request_withdrawal(
  p_id uuid, p_digest bytea, p_payer text, p_asset text, p_amount bigint, p_max_fee bigint, p_fee bigint,
  p_nonce bytea, p_deadline timestamptz, p_message bytea, p_signature bytea,
  OUT code text, OUT id uuid, OUT available bigint, OUT held bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_wallet uuid := offpeak._account_id('wallet', p_payer, p_asset); w offpeak.wallet_balance;
        v_nano bigint := offpeak._nano(p_amount);
BEGIN
  SELECT * INTO w FROM offpeak.wallet_balance x WHERE x.account_id = v_wallet FOR NO KEY UPDATE;
  available := coalesce(w.available, 0); held := coalesce(w.held, 0);
  SELECT x.id INTO id FROM offpeak.withdrawal x WHERE x.digest = p_digest;
  IF FOUND THEN code := 'duplicate'; RETURN; END IF;
  code := CASE
    WHEN EXISTS (SELECT FROM offpeak.withdrawal x WHERE x.payer = p_payer AND x.nonce = p_nonce) THEN 'nonce_used'
    WHEN EXISTS (SELECT FROM offpeak.ledger_halt x WHERE x.cleared_at IS NULL) THEN 'halted'
    WHEN w.exiting THEN 'exit_open'
    WHEN w.owed > 0 THEN 'wallet_owes'
    WHEN available + held < v_nano THEN 'insufficient_funds'
    WHEN available < v_nano THEN 'funds_on_hold'
    WHEN (SELECT count(*) FROM offpeak.withdrawal x WHERE x.account_id = v_wallet AND x.state = 'pending') >= 16
      THEN 'too_many_pending'
    ELSE 'ok' END;
  IF code <> 'ok' THEN RETURN; END IF;
  id := p_id;
  INSERT INTO offpeak.withdrawal(
    id, digest, account_id, payer, amount, max_fee, fee, nonce, deadline, message, signature, state, requested_at)
  VALUES (p_id, p_digest, v_wallet, p_payer, v_nano, offpeak._nano(p_max_fee), offpeak._nano(p_fee), p_nonce,
          p_deadline, p_message, p_signature, 'pending', clock_timestamp());
  PERFORM offpeak._post(p_id, v_wallet, offpeak._house('withdraw_clearing', p_asset), v_nano, p_asset);
  PERFORM offpeak._house('fee', p_asset);
  UPDATE offpeak.wallet_balance x SET available = x.available - v_nano
   WHERE x.account_id = v_wallet AND x.available >= v_nano;
  IF NOT FOUND THEN RAISE EXCEPTION 'a wallet changed under its lock'; END IF;
END $$;

-- A pending withdrawal can never be paid any more: its money goes back. Callers have the proof: a final
-- block later than its deadline at which the contract has not used its digest.
-- Codes: ok, duplicate (failed before), paid, unknown.
CREATE FUNCTION offpeak.fail_withdrawal(p_id uuid, p_reason text, p_block bytea)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE w offpeak.withdrawal; v_asset text;
BEGIN
  SELECT * INTO w FROM offpeak.withdrawal x WHERE x.id = p_id;
  IF w.id IS NULL THEN RETURN 'unknown'; END IF;
  PERFORM FROM offpeak.wallet_balance x WHERE x.account_id = w.account_id FOR NO KEY UPDATE;
  UPDATE offpeak.withdrawal x
     SET state = 'failed', ended_at = clock_timestamp(), reason = p_reason || ', block 0x' || encode(p_block, 'hex')
   WHERE x.id = p_id AND x.state = 'pending';
  IF NOT FOUND THEN
    RETURN (SELECT CASE x.state WHEN 'failed' THEN 'duplicate' ELSE x.state END
              FROM offpeak.withdrawal x WHERE x.id = p_id);
  END IF;
  SELECT a.asset INTO v_asset FROM offpeak.account a WHERE a.id = w.account_id;
  PERFORM offpeak._give(p_id, offpeak._house('withdraw_clearing', v_asset), w.account_id, w.amount, v_asset);
  RETURN 'ok';
END $$;

-- --- claims and payouts ------------------------------------------------------------------------

-- The sender of a plain transfer asks for it as a deposit. Codes: ok, duplicate (the same message),
-- unknown, not_yours, claimed, not_final.
CREATE FUNCTION offpeak.request_claim(
  p_id uuid, p_event uuid, p_payer text, p_digest bytea, p_message bytea, p_signature bytea, OUT code text, OUT id uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE e offpeak.chain_event; c offpeak.suspense_claim;
BEGIN
  SELECT * INTO e FROM offpeak.chain_event x WHERE x.id = p_event AND x.kind = 'plain-transfer' FOR NO KEY UPDATE;
  SELECT * INTO c FROM offpeak.suspense_claim x WHERE x.event_id = p_event;
  id := coalesce(c.id, p_id);
  code := CASE
    WHEN e.id IS NULL OR e.state = 'orphaned' THEN 'unknown'
    WHEN e.payer <> p_payer THEN 'not_yours'
    WHEN c.digest = p_digest THEN 'duplicate'
    WHEN c.id IS NOT NULL THEN 'claimed'
    WHEN e.state <> 'booked' THEN 'not_final'
    ELSE 'ok' END;
  IF code = 'ok' THEN
    INSERT INTO offpeak.suspense_claim(id, event_id, payer, digest, message, signature, state, requested_at)
    VALUES (p_id, p_event, p_payer, p_digest, p_message, p_signature, 'requested', clock_timestamp());
  END IF;
END $$;

-- A house account's balance: what was rolled up, and what has happened since.
CREATE FUNCTION offpeak.house_balance_of(p_account uuid)
RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (coalesce(max(h.balance), 0) + coalesce((
           SELECT sum(CASE WHEN t.credit = p_account THEN t.amount ELSE -t.amount END) FROM offpeak.transfer t
            WHERE (t.credit = p_account OR t.debit = p_account)
              AND t.xid >= coalesce((SELECT x.up_to FROM offpeak.house_balance x WHERE x.account_id = p_account),
                                    '0'::xid8)), 0))::bigint
    FROM offpeak.house_balance h WHERE h.account_id = p_account
$$;

-- Set aside what a supplier has earned, for one payout (base units). Codes: ok, duplicate, halted,
-- no_address (the address is not the supplier's), not_earned.
CREATE FUNCTION offpeak.request_payout(p_id uuid, p_supplier uuid, p_address text, p_asset text, p_amount bigint)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_account uuid := offpeak.open_account('supplier', p_supplier::text, p_asset); v_nano bigint := offpeak._nano(p_amount);
        s offpeak.supplier;
BEGIN
  SELECT * INTO s FROM offpeak.supplier x WHERE x.id = p_supplier FOR NO KEY UPDATE;
  IF EXISTS (SELECT FROM offpeak.payout x WHERE x.id = p_id) THEN RETURN 'duplicate'; END IF;
  IF EXISTS (SELECT FROM offpeak.ledger_halt x WHERE x.cleared_at IS NULL) THEN RETURN 'halted'; END IF;
  IF s.payout_address IS DISTINCT FROM p_address THEN RETURN 'no_address'; END IF;
  IF v_nano <= 0 OR offpeak.house_balance_of(v_account) < v_nano THEN RETURN 'not_earned'; END IF;
  INSERT INTO offpeak.payout(id, supplier_id, address, asset, amount, state, requested_at)
  VALUES (p_id, p_supplier, p_address, p_asset, v_nano, 'pending', clock_timestamp());
  PERFORM offpeak._post(p_id, v_account, offpeak._house('payout_clearing', p_asset), v_nano, p_asset);
  RETURN 'ok';
END $$;
