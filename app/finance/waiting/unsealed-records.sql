-- Signed records that are in no receipt batch.
SELECT u.record_id::text, u.completed_at, u.include_by FROM offpeak.usage_record u
 WHERE u.leaf_index IS NULL AND u.signature IS NOT NULL
