# SPDX-License-Identifier: GPL-3.0-or-later

"""Read how the kubelet places pods from its files. The API is not used, because it would require a right that allows a
shell on the node.
"""

from __future__ import annotations

import typing

from ...._parse.node import tuning as parse
from ..sysfs_reader import SysfsReader
from .rows import Rows

_STATES = {"cpu_manager": "var/lib/kubelet/cpu_manager_state", "memory_manager": "var/lib/kubelet/memory_manager_state"}
#: OpenShift's, kubeadm's
_CONFIGURATIONS = ("etc/kubernetes/kubelet.conf", "var/lib/kubelet/config.yaml")
#: key of the configuration: row, and what the kubelet does where the key is not there
_SETTINGS = {"topologyManagerPolicy": ("topology_manager", "none"), "reservedSystemCPUs": ("reserved_cpus", "none")}


def read(rows: Rows, host: SysfsReader) -> None:
    for row, name in _STATES.items():
        rows.file(row, host, name, parse.manager_policy)
    of_settings = [row for row, _default in _SETTINGS.values()]
    found: typing.Optional[dict[str, str]] = None
    for name in _CONFIGURATIONS:
        before = len(host.errors)
        # kubeadm has a kubeconfig of the first name
        if b"current-context" in (host.raw(name) or b""):
            continue
        found = host.value(name, parse.parse_kubelet_settings)
        if len(host.errors) > before:
            rows.unread(host.errors[-1], *of_settings)
            return
        if found is not None:
            break
    if found is None:
        rows.absent(*of_settings)
        return
    for key, (row, default) in _SETTINGS.items():
        rows.add(row, found.get(key, default))
