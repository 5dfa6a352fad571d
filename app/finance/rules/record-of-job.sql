-- Every ended job has a usage record that says what its hold's resolution says.
SELECT r.hold_id::text, r.charged::text, coalesce(u.charge::text, 'no record')
  FROM offpeak.hold_resolution r LEFT JOIN offpeak.usage_record u ON u.record_id = r.hold_id
 WHERE u.record_id IS NULL OR u.charge <> r.charged OR u.released <> r.released
    OR u.held <> r.amount
