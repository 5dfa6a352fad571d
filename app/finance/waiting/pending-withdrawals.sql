-- Withdrawals that the chain has not paid yet.
SELECT 'withdrawal ' || w.id, w.requested_at, w.deadline FROM offpeak.withdrawal w WHERE w.state = 'pending'
