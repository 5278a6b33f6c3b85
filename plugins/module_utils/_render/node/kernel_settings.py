# SPDX-License-Identifier: GPL-3.0-or-later

"""Files for systemd-sysctl and systemd-tmpfiles, which apply the settings of the intent at each boot. [man sysctl.d(5),
tmpfiles.d(5)]
"""

from __future__ import annotations

import typing

from ..._model.node.file_owner import format_owner

_HEAD = "# of linerate.rdma, rdma_cluster.tuning: changed and removed by it\n"


def sysctl_file(values: typing.Mapping[str, str], owner: str) -> str:
    """Return the text of a file in /etc/sysctl.d. Return an empty text if there are no values.

    :param values: value by name of the sysctl
    :param owner: name by which the intent marks its files
    """
    return _join(owner, [sysctl_line(key, value) for key, value in sorted(values.items())])


def sysctl_line(key: str, value: str) -> str:
    """Return the line of a file in /etc/sysctl.d that sets a key."""
    return f"{key} = {value}"


def tmpfiles_file(values: typing.Mapping[str, str], owner: str) -> str:
    """Return the text of a file in /etc/tmpfiles.d; empty without values.

    :param values: values by path below /sys; a path may contain ``*``
    :param owner: name by which the intent marks its files
    """
    return _join(owner, [f"w {path} - - - - {value}" for path, value in sorted(values.items())])


def _join(owner: str, lines: typing.Sequence[str]) -> str:
    return _HEAD + format_owner(owner) + "".join(f"{line}\n" for line in lines) if lines else ""
