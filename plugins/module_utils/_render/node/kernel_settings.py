# SPDX-License-Identifier: GPL-3.0-or-later

"""Files for systemd-sysctl and systemd-tmpfiles, which apply the settings of the intent at each boot. [man sysctl.d(5),
tmpfiles.d(5)]
"""

from __future__ import annotations

import typing

_HEAD = "# of linerate.rdma, rdma_cluster.tuning: changed and removed by it\n"


def sysctl_file(values: typing.Mapping[str, str]) -> str:
    """Return the text of a file in /etc/sysctl.d. Return an empty text if there are no values.

    :param values: value by name of the sysctl
    """
    return _HEAD + "".join(f"{sysctl_line(key, value)}\n" for key, value in sorted(values.items())) if values else ""


def sysctl_line(key: str, value: str) -> str:
    """Return the line of a file in /etc/sysctl.d that sets a key."""
    return f"{key} = {value}"


def tmpfiles_file(values: typing.Mapping[str, str]) -> str:
    """Return the text of a file in /etc/tmpfiles.d; empty without values.

    :param values: values by path below /sys; a path may contain ``*``
    """
    return _HEAD + "".join(f"w {path} - - - - {value}\n" for path, value in sorted(values.items())) if values else ""
