-- A rolled-up balance is the sum of the transfers before its mark.
SELECT h.account_id::text, coalesce(sum(
         CASE WHEN t.credit = h.account_id THEN t.amount ELSE -t.amount END), 0)::text, h.balance::text
  FROM offpeak.house_balance h LEFT JOIN offpeak.transfer t
    ON (t.credit = h.account_id OR t.debit = h.account_id) AND t.xid < h.up_to
 GROUP BY h.account_id, h.balance
HAVING coalesce(sum(CASE WHEN t.credit = h.account_id THEN t.amount ELSE -t.amount END), 0) <> h.balance
