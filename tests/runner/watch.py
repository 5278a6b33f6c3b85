# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes down what the Pythons of a job open, start and connect to. Each of them loads it as its 'sitecustomize'.

It is a file of one job: a line for each access, the event and what it is about, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import typing

_LOG = os.environ.get("WATCH_LOG", "")
_SEEN: set[tuple[str, str]] = set()


def _note(event: str, arguments: tuple[typing.Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "os.posix_spawn", "os.exec"):
        what = arguments[0]
    elif event == "socket.connect":
        what = arguments[1]
    else:
        return
    if isinstance(what, bytes):
        what = what.decode(errors="replace")
    # a number is a file that is open already; a name without a folder is looked up in PATH
    if not isinstance(what, (str, tuple, os.PathLike)):
        return
    text = os.path.abspath(what) if isinstance(what, (str, os.PathLike)) and os.sep in str(what) else str(what)
    if (event, text) not in _SEEN:
        _SEEN.add((event, text))
        # anew each time: a process that becomes another one closes all that it has open
        file = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, (json.dumps([event, text]) + "\n").encode())
        os.close(file)


if _LOG:
    # what is written here is seen here as well, once
    _SEEN.add(("open", _LOG))
    sys.addaudithook(_note)
