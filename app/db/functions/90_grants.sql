-- Three roles. The application reads all, changes money, slots and jobs by function only, and writes
-- price points. The operator may besides say who serves, open accounts, book made-up deposits, correct
-- records, close periods, order payouts and lift a halt; the treasury may book what the chain says and
-- send transactions: what a gateway that was taken over must not be able to do.
-- Functions whose names begin with _ are parts for the others, for no role.
DO $$ BEGIN
  CREATE ROLE offpeak_app NOLOGIN;
EXCEPTION  -- roles belong to the whole server: another database's migration may have made it just now
  WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
  CREATE ROLE offpeak_operator NOLOGIN;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
  CREATE ROLE offpeak_treasury NOLOGIN;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
  IF NOT pg_has_role('offpeak_operator', 'offpeak_app', 'MEMBER') THEN
    GRANT offpeak_app TO offpeak_operator;
  END IF;
  IF NOT pg_has_role('offpeak_treasury', 'offpeak_app', 'MEMBER') THEN
    GRANT offpeak_app TO offpeak_treasury;
  END IF;
EXCEPTION  -- granted by another database's migration at the same moment
  WHEN unique_violation OR internal_error THEN NULL;
END $$;
GRANT USAGE ON SCHEMA offpeak TO offpeak_app;
GRANT SELECT ON ALL TABLES IN SCHEMA offpeak TO offpeak_app;
GRANT INSERT ON offpeak.price_point TO offpeak_app;
GRANT INSERT, UPDATE ON offpeak.supplier, offpeak.agent TO offpeak_operator;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA offpeak FROM PUBLIC;
DO $$
DECLARE f record;
BEGIN
  FOR f IN SELECT p.oid::regprocedure AS called, CASE
                    WHEN p.proname IN ('open_account', 'credit_deposit', 'clear_halt', 'correct_record',
                                       'soft_close_period', 'reopen_period', 'close_period',
                                       'request_payout') THEN 'offpeak_operator'
                    WHEN p.proname IN ('record_events', 'orphan_event', 'book_event', 'lapse_exits',
                                       'cover_receivables', 'set_cursor', 'fail_withdrawal',
                                       'enqueue_transaction', 'sign_transaction', 'add_attempt',
                                       'note_broadcast', 'mine_transaction', 'unmine_transaction',
                                       'finish_transaction', 'postpone_transaction',
                                       'cancel_transaction', 'abandon_transaction') THEN 'offpeak_treasury'
                    ELSE 'offpeak_app' END AS who
             FROM pg_proc p
            WHERE p.pronamespace = 'offpeak'::regnamespace AND left(p.proname, 1) <> '_' LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f.called, f.who);
  END LOOP;
END $$;
