"""`offpeak-verify`: whether a receipt says what it should, by keys that its reader chose.

Needs the base install only and no network. Pure but for `cli` and `files`, which read files and
print. Start with `steps` (what is checked, in which order), then `trust` (why a key counts).
"""
