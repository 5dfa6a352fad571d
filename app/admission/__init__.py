"""Accepting a quote: a serving slot and the wallet's funds together, or neither.

`acceptance` is what is asked and what came of it (pure), `repository` the one SQL call,
`service` puts concurrent accepts into shared calls.
"""
