# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that render the settings of hosts for playbooks. Each filter is documented in the .yml file of its name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import DROP_IN
from ansible_collections.linerate.rdma.plugins.module_utils._model.node import file_owner
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.containerd import parse_containerd_limit
from ansible_collections.linerate.rdma.plugins.module_utils._plan.tuning_settings import (
    collect_kernel_settings,
    collect_settings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.node import host
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_filter

_MEMLOCK = "rdma_cluster.host.memlock"


def _parse_cluster(cluster: typing.Any) -> ClusterIntent:
    return typing.cast(ClusterIntent, load(ClusterIntent, cluster or {}, "rdma_cluster"))


@guard_filter
def render_host(cluster: typing.Any) -> list[dict[str, typing.Any]]:
    """Render the MachineConfigs and the KubeletConfig that the intent needs on the hosts, each as a mapping with its
    ``object`` and an empty ``fabric``. The list is empty if the intent needs none.

    :param cluster: value of ``rdma_cluster``
    """
    wanted = _parse_cluster(cluster)
    return [{"fabric": "", "object": item} for item in host.render_host_configs(wanted.host, wanted.intent_name)]


@guard_filter
def make_containerd_drop_in(cluster: typing.Any, there: typing.Any = "") -> dict[str, typing.Any]:
    """Return containerd's drop-in file with the limit of locked memory, and what a play must know to write or remove
    it.

    :param cluster: value of ``rdma_cluster``
    :param there: text of the existing file on the node; empty if there is no file
    :returns: a mapping with these keys: ``intent`` (name by which the intent marks its files and kernel arguments on
        nodes), ``path``, ``content`` (empty unless the intent sets the limit through containerd), ``used`` (whether a
        file of another intent has the same limit and is therefore kept), ``refusal`` (why a file of another intent
        prevents the change, with the remedy, otherwise empty), ``emptied`` (text that a teardown writes before it
        removes the file), ``stays`` (owner of a file that a teardown must leave)
    """
    wanted, text = _parse_cluster(cluster), str(there)
    memlock, owner = wanted.host.memlock, file_owner.build_owner(wanted.intent_name, wanted.node_selector)
    by_containerd = memlock is not None and memlock.by == "containerd"
    content = host.make_containerd_drop_in(memlock, owner) if memlock is not None and by_containerd else ""
    foreign = bool(content) and file_owner.is_of_other_intent(text, owner)
    used, why = foreign and file_owner.has_settings(text, content), ""
    if foreign and not used:
        remedy = file_owner.describe_owner_remedy(DROP_IN, _MEMLOCK, "host", owner)
        why = f"{file_owner.explain_owner(DROP_IN, text, _MEMLOCK)}. {remedy}"
    return {
        "intent": owner,
        "path": DROP_IN,
        "content": content,
        "used": used,
        "refusal": why,
        "emptied": host.empty_containerd_drop_in(owner),
        "stays": host.describe_owner(text, owner, by_containerd),
    }


@guard_filter
def find_containerd_limit(cluster: typing.Any, shown: typing.Any, limits: typing.Any = "") -> dict[str, typing.Any]:
    """Return the limit of locked memory with which containerd runs, and whether it must be restarted to get the limit
    of the intent.

    :param cluster: value of ``rdma_cluster``
    :param shown: output of ``systemctl show containerd --property=MainPID,LimitMEMLOCK,NeedDaemonReload``
    :param limits: text of /proc/<pid>/limits; empty if it was not read
    :returns: a mapping with these keys: ``pid`` (process ID of containerd), ``limit`` (its present limit), ``stale``
        (whether it needs the restart), ``reload`` (whether systemd must first load its unit files again),
        ``may_be_stale`` (whether the restart may be necessary after that)
    """
    found, memlock = parse_containerd_limit(str(shown), str(limits)), _parse_cluster(cluster).host.memlock
    limit = host.spell_limit(memlock) if memlock is not None and memlock.by == "containerd" else ""
    return {
        "pid": found.pid,
        "limit": found.running,
        "stale": bool(limit) and found.is_stale(limit),
        "may_be_stale": bool(limit) and found.may_be_stale(limit),
        "reload": found.needs_reload,
    }


@guard_filter
def tuning_settings(cluster: typing.Any, fabrics: typing.Any) -> dict[str, typing.Any]:
    """Return the settings of the host that the intent requests and that need no reboot.

    :param cluster: value of ``rdma_cluster``
    :param fabrics: value of ``rdma_fabrics``
    :returns: a mapping with these keys: ``asked`` (whether there are such settings), ``rows`` (names of their tuning
        rows), ``sections`` (values by section and key) and ``kernel_settings`` (options of the module kernel_settings)
    """
    intent = parse_intent(fabrics, None, cluster or {})
    found = collect_settings(intent)
    return {
        "asked": bool(found.rows),
        "rows": list(found.rows),
        "sections": found.sections,
        "kernel_settings": {
            **collect_kernel_settings(found),
            "intent": file_owner.build_owner(intent.cluster.intent_name, intent.cluster.node_selector),
        },
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
