# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the limit of locked memory of containerd: of its unit as systemd has loaded it, and of its running process."""

from __future__ import annotations

import re

from ..._model.base.errors import ParseError
from ..._model.kubernetes.host import ContainerdLimit
from .tuning import parse_memlock

_PROPERTY = re.compile(r"^(MainPID|LimitMEMLOCK|NeedDaemonReload)=([a-z0-9]{1,20})$", re.MULTILINE)


def parse_containerd_limit(shown: str, limits: str = "") -> ContainerdLimit:
    """Return two limits of locked memory of containerd, that of its unit and that of its running process, with the
    process ID and whether systemd must load the unit again.

    :param shown: output of ``systemctl show containerd --property=MainPID,LimitMEMLOCK,NeedDaemonReload``
    :param limits: text of /proc/<pid>/limits of the main process; if empty, the limit of the unit is used for the
        process
    :raises ParseError: MainPID or LimitMEMLOCK is missing, or a text does not have the expected form
    """
    found = dict(_PROPERTY.findall(shown))
    pid, loaded = found.get("MainPID", ""), found.get("LimitMEMLOCK", "")
    if not pid.isdecimal() or not (loaded.isdecimal() or loaded == "infinity"):
        raise ParseError("systemctl show containerd", shown, "MainPID and LimitMEMLOCK")
    running = parse_memlock(limits).replace("unlimited", "infinity") if limits else loaded
    return ContainerdLimit(int(pid), loaded, running, found.get("NeedDaemonReload") == "yes")
