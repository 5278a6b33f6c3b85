# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lab says while it works: each step, how long it took, and what to do when it failed."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import typing

HEARTBEAT_SECONDS = 8
_running: typing.List[object] = []


class LabError(Exception):
    """A step failed for a known reason.

    :ivar remedy: what the user can do
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def say(text: str) -> None:
    print(f"lab: {text}", flush=True)


@contextlib.contextmanager
def step(what: str) -> typing.Iterator[None]:
    """Announce a step, say every few seconds that it still runs, and print its time in seconds."""
    start = time.monotonic()
    done = threading.Event()

    def heartbeat() -> None:
        while not done.wait(HEARTBEAT_SECONDS):
            # of steps in steps, the innermost speaks
            if _running[-1] is done:
                say(f"  ... {what} ({time.monotonic() - start:.0f} s)")

    say(what)
    _running.append(done)
    thread = threading.Thread(target=heartbeat, daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        say(f"FAILED: {what} ({time.monotonic() - start:.1f} s)")
        raise
    finally:
        done.set()
        thread.join()
        _running.remove(done)
    say(f"  {what}: {time.monotonic() - start:.1f} s")


def fail(error: LabError) -> int:
    print(f"lab: {error}\nlab: what to do: {error.remedy}", file=sys.stderr, flush=True)
    return 1
