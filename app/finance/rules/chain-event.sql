-- A booked deposit or plain transfer moved its amount out of the treasury account, one that is not on the chain nothing.
SELECT e.id::text, CASE WHEN e.state = 'booked' THEN e.amount * 1000 ELSE 0 END::text, coalesce(t.amount, 0)::text
  FROM offpeak.chain_event e LEFT JOIN (
       SELECT t.ref, sum(CASE WHEN d.kind = 'treasury' THEN t.amount ELSE 0 END
                         - CASE WHEN c.kind = 'treasury' THEN t.amount ELSE 0 END) AS amount
         FROM offpeak.transfer t JOIN offpeak.account d ON d.id = t.debit JOIN offpeak.account c ON c.id = t.credit
        GROUP BY t.ref) t ON t.ref = e.id
 WHERE e.kind IN ('deposited', 'plain-transfer')
   AND coalesce(t.amount, 0) <> CASE WHEN e.state = 'booked' THEN e.amount * 1000 ELSE 0 END
