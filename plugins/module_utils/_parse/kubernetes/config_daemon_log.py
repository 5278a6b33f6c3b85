# SPDX-License-Identifier: GPL-3.0-or-later

"""Log of the SR-IOV network operator, or of its config daemon [sriov-network-operator pkg/log: zap's console encoder]: time, level, place, message and fields
as JSON, with tabs.
"""

from __future__ import annotations

from ..._model.errors import ParseError
from ..._model.text import both_ends
from ..limits import decode_json

#: how a controller writes that a sync ended with an error and will be repeated; other errors in the log stop nothing
_FAILED = "\tReconciler error\t"
#: characters of an error, less those that stand for what is left out
_MOST = 495


def last_error(text: str) -> str:
    """Error of the last sync that failed, 500 characters at most; empty when none did. Where it is long the object that was refused is in its middle."""
    line = next((line for line in reversed(text.splitlines()) if _FAILED in line), "")
    fields = line.partition(_FAILED)[2].strip()
    try:
        data = decode_json(fields, "log of the config daemon", unique=False)
    except ParseError:
        # cut off, or another encoder: the whole of it says more than nothing
        return both_ends(fields, _MOST)
    return both_ends(str(data.get("error") or fields) if isinstance(data, dict) else fields, _MOST)
