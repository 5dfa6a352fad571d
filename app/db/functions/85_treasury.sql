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
