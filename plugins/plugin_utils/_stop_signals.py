# SPDX-License-Identifier: GPL-3.0-or-later

"""Let a user stop a roll of nodes before its next node, by SIGINT or SIGTERM."""

from __future__ import annotations

import contextlib
import signal
import typing


@contextlib.contextmanager
def handle_stop_signals() -> typing.Iterator[typing.Callable[[], bool]]:
    """Provide a context with a function that returns whether the roll must end before the next node. The function
    returns True after the first SIGINT or SIGTERM.

    A second signal raises KeyboardInterrupt. The node that is being rolled then remains in its present state, and the
    next run continues from there. The previous signal handlers are restored at the end.
    """
    told: list[int] = []

    def note(number: int, _frame: typing.Any) -> None:
        if told:
            raise KeyboardInterrupt
        told.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(told)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
