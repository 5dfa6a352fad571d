-- Accounts, deposits, house balances, signatures, retention, and the stop switch.

CREATE FUNCTION offpeak.open_account(p_kind text, p_owner text, p_asset text)
RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_id uuid := offpeak._account_id(p_kind, p_owner, p_asset);
BEGIN
  INSERT INTO offpeak.account(id, owner, asset, kind) VALUES (v_id, p_owner, p_asset, p_kind)
    ON CONFLICT DO NOTHING;  -- on either unique key: naming one lets a race break on the other
  IF p_kind = 'wallet' THEN
    INSERT INTO offpeak.wallet_balance(account_id, available, held, open_jobs) VALUES (v_id, 0, 0, 0)
      ON CONFLICT (account_id) DO NOTHING;
  END IF;
  RETURN v_id;
END $$;

-- Credit a wallet, once per p_ref. The first money of an asset also opens our own accounts in it, so
-- no charge can meet a missing one. Returns false when that deposit was booked before.
CREATE FUNCTION offpeak.credit_deposit(p_ref uuid, p_payer text, p_asset text, p_amount bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_wallet uuid; v_clearing uuid;
BEGIN
  v_clearing := offpeak.open_account('deposit_clearing', 'offpeak', p_asset);
  PERFORM offpeak.open_account('fee', 'offpeak', p_asset);
  v_wallet := offpeak.open_account('wallet', p_payer, p_asset);
  PERFORM FROM offpeak.wallet_balance w WHERE w.account_id = v_wallet FOR NO KEY UPDATE;
  INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
  VALUES (p_ref, 1, v_clearing, v_wallet, p_amount, p_asset, clock_timestamp()) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE offpeak.wallet_balance w SET available = w.available + p_amount WHERE w.account_id = v_wallet;
  RETURN true;
END $$;

-- Fold finished transfers into the house accounts' balances. The horizon is the oldest transaction
-- still running: a roll-up by id or time would lose what commits late.
CREATE FUNCTION offpeak.roll_up_house()
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE v_horizon xid8; n int;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('offpeak.roll_up_house', 0));
  v_horizon := pg_snapshot_xmin(pg_current_snapshot());
  INSERT INTO offpeak.house_balance AS h(account_id, balance, up_to)
  SELECT a.id, 0, '0'::xid8 FROM offpeak.account a WHERE a.kind <> 'wallet'
    ON CONFLICT (account_id) DO NOTHING;
  UPDATE offpeak.house_balance h
     SET balance = h.balance + coalesce((
           SELECT sum(CASE WHEN t.credit = h.account_id THEN t.amount ELSE -t.amount END)
             FROM offpeak.transfer t
            WHERE (t.credit = h.account_id OR t.debit = h.account_id)
              AND t.xid >= h.up_to AND t.xid < v_horizon), 0),
         up_to = v_horizon
   WHERE h.up_to < v_horizon;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- Store signatures made for stored records. Signing is deterministic, so a second one is the same.
CREATE FUNCTION offpeak.store_signatures(p_record uuid[], p_key_id text, p_signature bytea[])
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE n int;
BEGIN
  UPDATE offpeak.usage_record u SET key_id = p_key_id, signature = x.signature
    FROM unnest(p_record, p_signature) AS x(record_id, signature)
   WHERE u.record_id = x.record_id AND u.signature IS NULL;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- Delete request and answer texts after their retention time. Digests stay.
CREATE FUNCTION offpeak.purge_content(p_limit int)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE n int;
BEGIN
  UPDATE offpeak.job j SET request = NULL, result = NULL
   WHERE j.id IN (SELECT x.id FROM offpeak.job x
                   WHERE x.request IS NOT NULL AND x.content_until < clock_timestamp()
                     AND x.state NOT IN ('queued', 'accepted', 'running')
                   ORDER BY x.content_until LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- Stop new accepts until an operator has looked; running jobs settle. One open halt at a time.
CREATE FUNCTION offpeak.halt_ledger(p_reason text)
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO offpeak.ledger_halt(reason)
  SELECT p_reason WHERE NOT EXISTS (SELECT FROM offpeak.ledger_halt h WHERE h.cleared_at IS NULL)
$$;

-- An operator has looked and says why accepting may go on. Returns how many halts were lifted.
CREATE FUNCTION offpeak.clear_halt(p_because text)
RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE n int;
BEGIN
  UPDATE offpeak.ledger_halt h SET cleared_at = clock_timestamp(), cleared_because = p_because
   WHERE h.cleared_at IS NULL;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;
