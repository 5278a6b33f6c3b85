# SPDX-License-Identifier: GPL-3.0-or-later

"""A limit of time for what a hostile text could make last for minutes."""

from __future__ import annotations

import contextlib
import signal
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
