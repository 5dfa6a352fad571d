"""What must hold in the books. Each rule is a query whose every row is a broken promise."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A claim about the stored rows; `query` returns (subject, expected, found) where it fails."""

    name: str
    claim: str
    query: str


RULES = (
    Rule(
        "wallet-balance",
        "a wallet has what came in, less what went out and what is held",
        """
        SELECT w.account_id::text, coalesce(t.net, 0)::text, (w.available + w.held)::text
          FROM offpeak.wallet_balance w LEFT JOIN (
               SELECT account_id, sum(amount) AS net FROM (
                 SELECT credit AS account_id, amount FROM offpeak.transfer
                 UNION ALL SELECT debit, -amount FROM offpeak.transfer) x
                GROUP BY account_id) t USING (account_id)
         WHERE w.available + w.held <> coalesce(t.net, 0)
        """,
    ),
    Rule(
        "wallet-held",
        "what a wallet has held is the sum of its open holds",
        """
        SELECT w.account_id::text, coalesce(h.amount, 0)::text, w.held::text
          FROM offpeak.wallet_balance w LEFT JOIN (
               SELECT h.account_id, sum(h.amount) AS amount FROM offpeak.hold h
                WHERE NOT EXISTS (SELECT FROM offpeak.hold_resolution r WHERE r.hold_id = h.id)
                GROUP BY h.account_id) h USING (account_id)
         WHERE w.held <> coalesce(h.amount, 0)
        """,
    ),
    Rule(
        "wallet-open-jobs",
        "a wallet's count of open jobs is the number of its open jobs",
        """
        SELECT w.account_id::text, coalesce(j.n, 0)::text, w.open_jobs::text
          FROM offpeak.wallet_balance w LEFT JOIN (
               SELECT account_id, count(*) AS n FROM offpeak.job
                WHERE state IN ('queued', 'accepted', 'running') GROUP BY account_id) j USING (account_id)
         WHERE w.open_jobs <> coalesce(j.n, 0)
        """,
    ),
    Rule(
        "wallet-sequence",
        "a wallet's records are numbered from 1 without a gap and each names the one before",
        """
        SELECT u.record_id::text, coalesce(u.before::text, '-'), coalesce(u.previous_record::text, '-')
          FROM (SELECT record_id, payer_seq, previous_record,
                       lag(record_id) OVER w AS before, row_number() OVER w AS place
                  FROM offpeak.usage_record WINDOW w AS (PARTITION BY account_id ORDER BY payer_seq)) u
         WHERE u.payer_seq <> u.place OR u.previous_record IS DISTINCT FROM u.before
        """,
    ),
    Rule(
        "hold-of-job",
        "every job has one hold; it is resolved exactly when the job has ended",
        """
        SELECT j.id::text, j.state, coalesce(r.kind, CASE WHEN h.id IS NULL THEN 'no hold' ELSE 'open' END)
          FROM offpeak.job j LEFT JOIN offpeak.hold h ON h.id = j.id
          LEFT JOIN offpeak.hold_resolution r ON r.hold_id = j.id
         WHERE h.id IS NULL OR (r.hold_id IS NOT NULL) <> (j.ended_at IS NOT NULL)
        """,
    ),
    Rule(
        "record-of-job",
        "every ended job has a usage record that says what its hold's resolution says",
        """
        SELECT r.hold_id::text, r.charged::text, coalesce(u.charge::text, 'no record')
          FROM offpeak.hold_resolution r LEFT JOIN offpeak.usage_record u ON u.record_id = r.hold_id
         WHERE u.record_id IS NULL OR u.charge <> r.charged OR u.released <> r.released
            OR u.held <> r.amount
        """,
    ),
    Rule(
        "charge-transfer",
        "a charge is one transfer from the wallet to fees, and there is none without a charge",
        """
        SELECT coalesce(r.hold_id, t.ref)::text, coalesce(r.charged, 0)::text, coalesce(t.amount, 0)::text
          FROM (SELECT * FROM offpeak.hold_resolution WHERE charged > 0) r
          FULL JOIN (SELECT t.ref, t.amount FROM offpeak.transfer t
                       JOIN offpeak.account a ON a.id = t.credit AND a.kind = 'fee') t ON t.ref = r.hold_id
         WHERE r.charged IS DISTINCT FROM t.amount
        """,
    ),
    Rule(
        "supplier-accrual",
        "what a lease cost is what its supplier was credited",
        """
        SELECT coalesce(c.lease_id, t.ref)::text, coalesce(c.amount, 0)::text, coalesce(t.amount, 0)::text
          FROM (SELECT * FROM offpeak.cost_entry WHERE amount > 0 AND kind <> 'overhead') c
          FULL JOIN (SELECT t.ref, t.amount FROM offpeak.transfer t
                       JOIN offpeak.account a ON a.id = t.credit AND a.kind = 'supplier') t
            ON t.ref = c.lease_id
         WHERE c.amount IS DISTINCT FROM t.amount
        """,
    ),
    Rule(
        "known-accounts",
        "money moves between known accounts of one asset",
        """
        SELECT t.ref::text, t.asset, coalesce(d.asset, 'no account') || ' > ' || coalesce(c.asset, 'no account')
          FROM offpeak.transfer t LEFT JOIN offpeak.account d ON d.id = t.debit
          LEFT JOIN offpeak.account c ON c.id = t.credit
         WHERE d.asset IS DISTINCT FROM t.asset OR c.asset IS DISTINCT FROM t.asset
        """,
    ),
    Rule(
        "house-balance",
        "a rolled-up balance is the sum of the transfers before its mark",
        """
        SELECT h.account_id::text, coalesce(sum(
                 CASE WHEN t.credit = h.account_id THEN t.amount ELSE -t.amount END), 0)::text, h.balance::text
          FROM offpeak.house_balance h LEFT JOIN offpeak.transfer t
            ON (t.credit = h.account_id OR t.debit = h.account_id) AND t.xid < h.up_to
         GROUP BY h.account_id, h.balance
        HAVING coalesce(sum(CASE WHEN t.credit = h.account_id THEN t.amount ELSE -t.amount END), 0) <> h.balance
        """,
    ),
    Rule(
        "occupied-slots",
        "a deployment's occupied slots are its leases that have not ended",
        """
        SELECT d.id::text, coalesce(l.n, 0)::text, d.occupied::text
          FROM offpeak.deployment d LEFT JOIN (
               SELECT deployment_id, count(*) AS n FROM offpeak.lease
                WHERE state IN ('active', 'ending') GROUP BY deployment_id) l ON l.deployment_id = d.id
         WHERE d.occupied <> coalesce(l.n, 0)
        """,
    ),
    Rule(
        "active-lease",
        "an active lease belongs to the job that runs under it, and to no other",
        """
        SELECT l.id::text, l.job_id::text, coalesce(j.id::text, 'no job')
          FROM offpeak.lease l LEFT JOIN offpeak.job j ON j.lease_id = l.id
         WHERE l.state = 'active' AND j.id IS DISTINCT FROM l.job_id
        """,
    ),
    Rule(
        "charge-of-usage",
        "a charge is the quoted rates times the measured tokens, rounded down, within the hold",
        """
        SELECT u.record_id::text, least(u.held, v.exact)::text, u.charge::text
          FROM offpeak.usage_record u JOIN offpeak.job j ON j.id = u.record_id
          CROSS JOIN LATERAL (SELECT div(j.per_request::numeric * 1000000
                 + u.input_tokens::numeric * j.input_rate + u.output_tokens::numeric * j.output_rate,
                 1000000) AS exact) v
         WHERE u.outcome = 1 AND u.charge <> least(u.held, v.exact)
        """,
    ),
)
