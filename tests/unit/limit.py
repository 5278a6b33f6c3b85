# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of time for what a hostile text could make last for minutes."""

from __future__ import annotations

import contextlib
import gc
import signal
import time
import typing

#: of the processor, where what is right takes less than five
SECONDS = 30.0


@contextlib.contextmanager
def limited(what: str, seconds: float = SECONDS) -> typing.Iterator[None]:
    """Fails when it takes longer than so many seconds of the processor."""

    def too_long(_number: int, _frame: typing.Any) -> None:
        raise TimeoutError(f"{what} is still at it after {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextlib.contextmanager
def bounded(seconds: float) -> typing.Iterator[None]:
    """Fails when it has taken more than so many seconds of this process's processor.

    :param seconds: 20 times what it takes on a machine at rest, or more, and a fifth of what it takes with the fault
        that the test is for, or less
    """
    with _no_collection():
        begin = time.process_time()
        yield
        taken = time.process_time() - begin
    assert taken < seconds, f"{taken:.2f} s of the processor where {seconds:g} s are the most"


def measure_seconds(action: typing.Callable[[], object], times: int = 3) -> float:
    """The least seconds of this process's processor that an action takes in several times: what a host takes from its
    guest counts as well."""
    return min(_measure_once(action) for _time in range(times))


def _measure_once(action: typing.Callable[[], object]) -> float:
    with _no_collection():
        begin = time.process_time()
        action()
        return time.process_time() - begin


@contextlib.contextmanager
def _no_collection() -> typing.Iterator[None]:
    """Pauses the collector of garbage, which walks through all that the tests before have left."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
