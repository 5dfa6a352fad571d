-- What wallets and suppliers are to get from the chain: withdrawals, claims and payouts, until an event
-- says that it has happened (86_chain_events.sql).

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
