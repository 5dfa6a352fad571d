-- Records without a signature.
SELECT u.record_id::text, u.completed_at, u.include_by FROM offpeak.usage_record u WHERE u.signature IS NULL
