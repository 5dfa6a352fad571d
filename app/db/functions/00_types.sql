-- Functions are code: all go and come back, so that none with outdated arguments stays behind.
DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'offpeak'::regnamespace LOOP
    EXECUTE format('DROP FUNCTION %s CASCADE', f);
  END LOOP;
END $$;

-- Result rows of the *_many functions. `ord` is the item's 1-based place in the call's arrays.
DO $$
BEGIN
  IF to_regtype('offpeak.accept_outcome') IS NULL THEN
    CREATE TYPE offpeak.accept_outcome AS (
      ord int, code text, job_id uuid, lease_id uuid, agent_id uuid, deployment_id uuid,
      replica text, deadline_at timestamptz, available bigint, held bigint);
  END IF;
  IF to_regtype('offpeak.end_outcome') IS NULL THEN
    CREATE TYPE offpeak.end_outcome AS (ord int, code text, job_id uuid);
  END IF;
  IF to_regtype('offpeak.placement') IS NULL THEN
    CREATE TYPE offpeak.placement AS (deployment_id uuid, agent_id uuid, replica text, ask bigint);
  END IF;
  IF to_regtype('offpeak.reassign_outcome') IS NULL THEN
    CREATE TYPE offpeak.reassign_outcome AS (
      ord int, code text, job_id uuid, lease_id uuid, agent_id uuid, replica text);
  END IF;
END $$;
CREATE SEQUENCE IF NOT EXISTS offpeak.session_epoch_seq;
