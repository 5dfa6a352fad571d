"""Memory at the end of start-up."""

import ctypes
import gc


def settle_memory() -> None:
    """Give back what only start-up needed, and keep the rest out of later collections.

    Measured on Linux: 13 of 150 MB go back (the tokenizer's and pydantic's building), and a full
    collection no longer walks some 400,000 objects that live as long as the process.
    """
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
