# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the clock of this node, and whether the kernel reports it as synchronized."""

from __future__ import annotations

import ctypes
import time
import typing

from ..._model.node.clock import NodeClock

#: adjtimex(2): the kernel's clock is not kept by anybody
STA_UNSYNC = 0x40


class _Timex(ctypes.Structure):
    """The whole ``struct timex`` of adjtimex(2). The kernel writes all of it."""

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
    """Return the time, whether the kernel clock is synchronized, and its maximum error. The last two are unknown if the
    kernel does not report them. Needs no privileges, because ``modes`` of adjtimex(2) is 0.
    """
    state = _read_timex()
    if state is None:
        return NodeClock(time.time())
    return NodeClock(time.time(), not state.status & STA_UNSYNC, state.maxerror / 1e6)


def _read_timex() -> typing.Optional[_Timex]:
    """Return the result of adjtimex(2), which reads the state of the kernel clock. Return None if the C library does
    not have the function, or if the kernel or seccomp refuses it.
    """
    state = _Timex()
    try:
        answer = ctypes.CDLL(None).adjtimex(ctypes.byref(state))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else state
