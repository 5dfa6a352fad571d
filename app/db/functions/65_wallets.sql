-- Keep at which block a contract wallet confirmed what it signed, before anything is done with it.
-- The first confirmation stays: a repetition finds it.
CREATE FUNCTION offpeak.record_contract_signature(
  p_digest bytea, p_signer text, p_method text, p_number bigint, p_block bytea)
RETURNS void LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO offpeak.contract_signature(digest, signer, method, block_number, block_hash, checked_at)
  VALUES (p_digest, p_signer, p_method, p_number, p_block, clock_timestamp()) ON CONFLICT (digest) DO NOTHING
$$;
