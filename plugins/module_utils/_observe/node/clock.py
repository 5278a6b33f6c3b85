# SPDX-License-Identifier: GPL-3.0-or-later

"""The clock of this node, and what the kernel says of who keeps it."""

from __future__ import annotations

import ctypes
import time
import typing

from ..._model.node.clock import NodeClock

#: adjtimex(2): the kernel's clock is not kept by anybody
STA_UNSYNC = 0x40


class _Timex(ctypes.Structure):
    """``struct timex`` of adjtimex(2), all of it: the kernel writes to its end."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        *(
            (name, ctypes.c_long)
            for name in ("constant", "precision", "tolerance", "time_sec", "time_usec", "tick", "ppsfreq", "jitter")
        ),
        ("shift", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("stabil", "jitcnt", "calcnt", "errcnt", "stbcnt")),
        ("tai", ctypes.c_int),
        ("padding", ctypes.c_int * 11),
    )


def read_clock() -> NodeClock:
    """Read the time, and the state of the kernel's clock. Needs no right: it is asked with ``modes`` 0."""
    state = _read_timex()
    if state is None:
        return NodeClock(time.time())
    return NodeClock(time.time(), not state.status & STA_UNSYNC, state.maxerror / 1e6)


def _read_timex() -> typing.Optional[_Timex]:
    """None where the C library has no adjtimex, or the kernel refuses it, as seccomp may."""
    state = _Timex()
    try:
        answer = ctypes.CDLL(None).adjtimex(ctypes.byref(state))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else state
