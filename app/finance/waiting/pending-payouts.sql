-- Payouts that the chain has not made yet.
SELECT 'payout ' || p.id, p.requested_at, NULL::timestamptz FROM offpeak.payout p WHERE p.state = 'pending'
