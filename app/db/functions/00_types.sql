-- Functions and their result types are code: all go and come back, so that nothing outdated stays.
DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'offpeak'::regnamespace LOOP
    EXECUTE format('DROP FUNCTION %s CASCADE', f);
  END LOOP;
END $$;

-- Result rows of the *_many functions. `ord` is the item's 1-based place in the call's arrays.
DROP TYPE IF EXISTS offpeak.accept_outcome, offpeak.end_outcome, offpeak.placement, offpeak.reassign_outcome;
CREATE TYPE offpeak.accept_outcome AS (
  ord int, code text, job_id uuid, lease_id uuid, agent_id uuid, deployment_id uuid,
  replica text, deadline_at timestamptz, available bigint, held bigint);
CREATE TYPE offpeak.end_outcome AS (ord int, code text, job_id uuid);
CREATE TYPE offpeak.placement AS (deployment_id uuid, agent_id uuid, replica text, ask bigint);
CREATE TYPE offpeak.reassign_outcome AS (
  ord int, code text, job_id uuid, lease_id uuid, agent_id uuid, replica text);

-- Numbers sessions: of two of one agent, the later has the larger epoch. Data, so it stays. (Alembic
-- does not carry sequences into a migration.)
CREATE SEQUENCE IF NOT EXISTS offpeak.session_epoch_seq;
