"""Leaf pieces with no knowledge of the product: ids, clock, content encryption, logging, batching.

May import nothing else of `app`. Start with `batcher.py`: it is what makes accepting cheap.
"""
