"""Money and evidence: amounts, holds, typed data, signatures, usage records.

Pure: no IO, no clock, no randomness; imports nothing else of ours. Start with `money`,
then `usage` (what a finished job is worth) and `signing` (who said so).
"""
