# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that render the settings of hosts for playbooks. Each filter is documented in the .yml file of its name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import DROP_IN
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.containerd import parse_containerd_limit
from ansible_collections.linerate.rdma.plugins.module_utils._plan.tuning_settings import (
    collect_kernel_settings,
    collect_settings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.node import host
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_filter


def _parse_cluster(cluster: typing.Any) -> ClusterIntent:
    return typing.cast(ClusterIntent, load(ClusterIntent, cluster or {}, "rdma_cluster"))


@guard_filter
def render_host(cluster: typing.Any) -> list[dict[str, typing.Any]]:
    """Render the MachineConfigs and the KubeletConfig that the intent needs on the hosts; empty if it needs none.

    :param cluster: value of ``rdma_cluster``
    """
    wanted = _parse_cluster(cluster)
    return [{"fabric": "", "object": item} for item in host.render_host_configs(wanted.host, wanted.intent_name)]


@guard_filter
def make_containerd_drop_in(cluster: typing.Any) -> dict[str, str]:
    """Return containerd's drop-in file with the limit of locked memory: its ``path`` and its ``content``. The content
    is empty unless the intent sets this limit through containerd.

    :param cluster: value of ``rdma_cluster``
    """
    memlock = _parse_cluster(cluster).host.memlock
    return {
        "path": DROP_IN,
        "content": host.make_containerd_drop_in(memlock) if memlock is not None and memlock.by == "containerd" else "",
    }


@guard_filter
def find_containerd_limit(cluster: typing.Any, shown: typing.Any, limits: typing.Any = "") -> dict[str, typing.Any]:
    """Return the limit of locked memory that containerd runs with (``limit``), the ID of its process (``pid``), and
    whether it needs a restart to run with the limit of the intent (``stale``).

    :param cluster: value of ``rdma_cluster``
    :param shown: output of ``systemctl show containerd --property=MainPID,LimitMEMLOCK,NeedDaemonReload``
    :param limits: text of /proc/<pid>/limits; empty if it was not read
    """
    found, memlock = parse_containerd_limit(str(shown), str(limits)), _parse_cluster(cluster).host.memlock
    stale = memlock is not None and memlock.by == "containerd" and found.is_stale(host.spell_limit(memlock))
    return {"pid": found.pid, "limit": found.running, "stale": stale}


@guard_filter
def tuning_settings(cluster: typing.Any, fabrics: typing.Any) -> dict[str, typing.Any]:
    """Return the settings of the host that the intent requests and that need no reboot: whether there are any
    (``asked``), the names of their tuning rows (``rows``), the values by section and key (``sections``), and the
    options of the module kernel_settings (``kernel_settings``).

    :param cluster: value of ``rdma_cluster``
    :param fabrics: value of ``rdma_fabrics``
    """
    found = collect_settings(parse_intent(fabrics, None, cluster or {}))
    return {
        "asked": bool(found.rows),
        "rows": list(found.rows),
        "sections": found.sections,
        "kernel_settings": collect_kernel_settings(found),
    }


class FilterModule:
    """The plugin class by which Ansible finds the filters of this file."""

    def filters(self) -> dict[str, typing.Any]:
        return {
            "render_host": render_host,
            "containerd_drop_in": make_containerd_drop_in,
            "containerd_limit": find_containerd_limit,
            "tuning_settings": tuning_settings,
        }
