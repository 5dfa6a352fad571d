-- The receipt log: every row is written once, in order, one writer at a time. What does not follow
-- on what is there is refused as a conflict, so a second writer or a stale one changes nothing.

CREATE FUNCTION offpeak._lock_log()
RETURNS void LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_advisory_xact_lock(hashtextextended('offpeak.receipt_log', 0))
$$;

-- Place records in the sequence and store their batch. p_record and p_hash are in the order of the
-- leaves, from place p_start on. p_keys is the log index of the key rotation that the header was
-- made under: a rotation since then may have retired the keys that it names.
CREATE FUNCTION offpeak.seal_batch(
  p_number bigint, p_start bigint, p_keys bigint, p_record uuid[], p_hash bytea[], p_header bytea,
  p_chunk_roots bytea)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE v_number bigint; v_end bigint; n int;
BEGIN
  PERFORM offpeak._lock_log();
  SELECT b.number + 1, b."end" INTO v_number, v_end FROM offpeak.receipt_batch b ORDER BY b.number DESC LIMIT 1;
  IF coalesce(v_number, 0) <> p_number OR coalesce(v_end, 0) <> p_start THEN
    RAISE EXCEPTION 'batch % from % does not follow on the last one', p_number, p_start USING ERRCODE = 'serialization_failure';
  END IF;
  IF p_keys <> (SELECT max(e.index) FROM offpeak.log_entry e WHERE e.kind = 'key-rotation') THEN
    RAISE EXCEPTION 'the keys changed after entry %', p_keys USING ERRCODE = 'serialization_failure';
  END IF;
  UPDATE offpeak.usage_record u SET leaf_index = p_start + x.ord - 1, leaf_hash = x.hash
    FROM unnest(p_record, p_hash) WITH ORDINALITY AS x(record_id, hash, ord)
   WHERE u.record_id = x.record_id AND u.leaf_index IS NULL AND u.signature IS NOT NULL;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF n <> cardinality(p_record) THEN
    RAISE EXCEPTION '% of % records cannot be sealed', cardinality(p_record) - n, cardinality(p_record)
      USING ERRCODE = 'serialization_failure';
  END IF;
  INSERT INTO offpeak.receipt_batch(number, start, "end", header, chunk_roots, sealed_at)
  VALUES (p_number, p_start, p_start + n, p_header, p_chunk_roots, clock_timestamp());
END $$;

-- Append one entry with the complete nodes that it adds to the tree, the leaf among them.
CREATE FUNCTION offpeak.append_log_entry(
  p_index bigint, p_kind text, p_entry bytea, p_leaf_hash bytea, p_batch bigint,
  p_level smallint[], p_node bigint[], p_hash bytea[])
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  PERFORM offpeak._lock_log();
  IF p_index <> coalesce((SELECT max(e.index) + 1 FROM offpeak.log_entry e), 0) THEN
    RAISE EXCEPTION 'entry % does not follow on the last one', p_index USING ERRCODE = 'serialization_failure';
  END IF;
  IF EXISTS (SELECT FROM offpeak.log_entry e WHERE e.leaf_hash = p_leaf_hash)
     OR EXISTS (SELECT FROM offpeak.log_entry e WHERE e.batch_number = p_batch) THEN
    RAISE EXCEPTION 'what should be entry % was logged just now', p_index USING ERRCODE = 'serialization_failure';
  END IF;
  INSERT INTO offpeak.log_entry(index, kind, entry, leaf_hash, batch_number, logged_at)
  VALUES (p_index, p_kind, p_entry, p_leaf_hash, p_batch, clock_timestamp());
  INSERT INTO offpeak.log_node(level, index, hash)
  SELECT x.level, x.node, x.hash FROM unnest(p_level, p_node, p_hash) AS x(level, node, hash);
END $$;

-- Store a checkpoint before anybody sees it. One size has one, for good; none is left out.
CREATE FUNCTION offpeak.store_checkpoint(p_size bigint, p_root bytea, p_note bytea)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  PERFORM offpeak._lock_log();
  IF p_size <> coalesce((SELECT max(c.size) FROM offpeak.log_checkpoint c), 0) + 1 THEN
    RAISE EXCEPTION 'checkpoint of size % does not follow on the last one', p_size USING ERRCODE = 'serialization_failure';
  END IF;
  INSERT INTO offpeak.log_checkpoint(size, root, note, signed_at)
  VALUES (p_size, p_root, p_note, clock_timestamp());
END $$;
