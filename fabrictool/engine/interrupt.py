"""Ctrl-C while greenlets work: raised in the greenlet that waits for them, and nowhere else.

Python raises KeyboardInterrupt in whatever runs at that moment. That may be a destructor, such as paramiko's of a channel, in which every
exception is dropped: the signal would be lost, and a run would go on.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import gevent


@contextmanager
def heard() -> Iterator[None]:
    """Within this block Ctrl-C reaches the caller, as soon as it waits for something. One that does not wait hears it after that."""
    waiting = gevent.getcurrent()
    before = signal.getsignal(signal.SIGINT)
    watcher = gevent.signal_handler(signal.SIGINT, lambda: gevent.kill(waiting, KeyboardInterrupt))
    try:
        yield
    finally:
        watcher.cancel()
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)
