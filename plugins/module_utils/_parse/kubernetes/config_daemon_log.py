# SPDX-License-Identifier: GPL-3.0-or-later

"""Log of the SR-IOV config daemon [sriov-network-operator pkg/log: zap's console encoder]: time, level, place, message and fields as JSON, with tabs."""

from __future__ import annotations

import json

#: how the daemon's controller writes that a sync ended with an error and will be repeated; other errors in the log stop nothing
_FAILED = "\tReconciler error\t"


def last_error(text: str) -> str:
    """Error of the last sync that failed; empty when none did."""
    line = next((line for line in reversed(text.splitlines()) if _FAILED in line), "")
    fields = line.partition(_FAILED)[2].strip()
    try:
        data = json.loads(fields)
    except (ValueError, RecursionError):
        # cut off, or another encoder: the whole of it says more than nothing
        return fields[:500]
    return str(data.get("error") or fields)[:500] if isinstance(data, dict) else fields[:500]
