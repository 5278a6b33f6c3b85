# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that open the renderers of what hosts need to playbooks. Each is documented in the .yml file of its name."""

from __future__ import annotations

import typing

from ansible.errors import AnsibleFilterError

from ansible_collections.linerate.rdma.plugins.module_utils._model.host_needs import HostNeeds
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import LoadError, load
from ansible_collections.linerate.rdma.plugins.module_utils._render import host


def _needs(cluster: typing.Any, name: str) -> HostNeeds:
    try:
        return typing.cast(Cluster, load(Cluster, cluster or {}, "rdma_cluster")).host
    except LoadError as error:
        raise AnsibleFilterError(f"linerate.rdma.{name}: {error}") from error


def render_host(cluster: typing.Any) -> typing.List[typing.Dict[str, typing.Any]]:
    """The MachineConfigs that the hosts need."""
    return [{"fabric": "", "object": item} for item in host.machine_configs(_needs(cluster, "render_host"))]


def containerd_drop_in(cluster: typing.Any) -> str:
    """The text of containerd's drop-in; empty where the intent asks for none."""
    memlock = _needs(cluster, "containerd_drop_in").memlock
    return host.containerd_drop_in(memlock) if memlock is not None and memlock.by == "containerd" else ""


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {"render_host": render_host, "containerd_drop_in": containerd_drop_in}
