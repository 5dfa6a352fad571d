"""What a verified receipt does not prove. Always shown."""

from typing import Final

NOT_PROVED: Final = (
    "that a GPU did the work, or which one",
    "that the metering was truthful",
    "that the named weights ran",
    "that the answer is right",
    "that the prompt stayed private",
    "that the price reflected real load",
    "that the records of other wallets are complete",
    "that the operator is solvent",
    "that the supplier was paid",
    "an exact time: only the log's order, and not after the block of a checked anchor",
    "that the nodes of --rpc tell the truth, or that a finalized block stays one",
    "that others see the same log, unless a checkpoint was compared",
    "who is behind a wallet",
    "any tax status",
    "that a failed request really failed",
)
