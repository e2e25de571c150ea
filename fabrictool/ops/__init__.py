"""pyinfra operations: `converge` sets one aspect of one room, `verify` reads everything back.

Public pyinfra API only; what works around pyinfra lives in engine/. Everything here also runs under plain
`pyinfra INVENTORY deploys/site.py`, without the engine, and has to be as safe there as it can.
"""

from fabrictool.ops.converge import converge, verify

__all__ = ["converge", "verify"]
