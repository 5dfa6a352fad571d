-- The application's role: reads all, changes money, slots and jobs by function only, and writes
-- three plain tables. Functions whose names begin with _ are parts for the others, not for it.
DO $$ BEGIN
  CREATE ROLE offpeak_app NOLOGIN;
EXCEPTION  -- roles belong to the whole server: another database's migration may have made it just now
  WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
GRANT USAGE ON SCHEMA offpeak TO offpeak_app;
GRANT SELECT ON ALL TABLES IN SCHEMA offpeak TO offpeak_app;
GRANT INSERT, UPDATE ON offpeak.supplier, offpeak.agent, offpeak.price_point TO offpeak_app;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA offpeak FROM PUBLIC;
DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT p.oid::regprocedure FROM pg_proc p
            WHERE p.pronamespace = 'offpeak'::regnamespace AND left(p.proname, 1) <> '_' LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO offpeak_app', f);
  END LOOP;
END $$;
