# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the log of the SR-IOV network operator or of its config daemon [sriov-network-operator pkg/log: zap's console
encoder]. A line consists of time, level, position in the source code, message, and further fields as JSON, separated by
tabs.
"""

from __future__ import annotations

from ..._model.base.errors import ParseError
from ..._model.base.text import both_ends
from ..limits import MIB, decode_json

#: how a controller writes that a sync ended with an error and will be repeated; other errors in the log stop nothing
_FAILED = "\tReconciler error\t"
#: errors of a sync that say no more than that one of its steps failed, which wrote a line of its own before
#: [pkg/host/internal/sriov/sriov.go v1.6.0]
_WITHOUT_CAUSE = ("cannot configure sriov interfaces", "cannot reset sriov interfaces")
#: characters at the end of a log that are looked at: the kubelet of a node sends it, and as a list of lines it takes
#: twenty times its memory. 20,000 lines, which are asked for, have some four of them
_MOST_TEXT = 4 * MIB
#: characters of an error, less those that stand for what is left out
_MOST = 495


def last_error(text: str) -> str:
    """Return the error of the last sync that failed, shortened in its middle to about 500 characters. The middle of a
    long error contains the rejected object. Return an empty string if no sync failed.

    :param text: log of the operator or the config daemon, of which the end is read
    """
    lines = text[-_MOST_TEXT:].splitlines()
    place = next((number for number in reversed(range(len(lines))) if _FAILED in lines[number]), None)
    if place is None:
        return ""
    fields = lines[place].partition(_FAILED)[2].strip()
    # cut off, or another encoder: the whole of it says more than nothing
    error = _parse_error_field(fields) or fields
    if error in _WITHOUT_CAUSE:
        steps = (
            _parse_error_field(line.rpartition("\t")[2])
            for line in reversed(lines[:place])
            if "\tERROR\t" in line and _FAILED not in line
        )
        cause = next((step for step in steps if step and step not in _WITHOUT_CAUSE), "")
        error = f"{error}: {cause}" if cause else error
    return both_ends(error, _MOST)


def _parse_error_field(fields: str) -> str:
    """Return the value of ``error`` in the JSON fields of a log line. Return an empty string if the text is not JSON,
    or has no such field.
    """
    try:
        data = decode_json(fields, "log of the config daemon", unique=False)
    except ParseError:
        return ""
    return str(data.get("error") or "") if isinstance(data, dict) else ""
