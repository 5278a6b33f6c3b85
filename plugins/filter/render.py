# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that renders the pods of the bandwidth measurement for playbooks. It is documented in render_pods.yml."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import pods
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_filter


@guard_filter
def render_pods(fabrics: typing.Any, cluster: typing.Any, nodes: typing.Any) -> list[dict[str, typing.Any]]:
    """Render the measuring pods of stage bandwidth: one pod for each fabric on each node. Each is a mapping with the
    pod as ``object`` and the name of its ``fabric``.

    :param fabrics: value of ``rdma_fabrics``
    :param cluster: value of ``rdma_cluster``
    :param nodes: names of the nodes
    """
    intent = parse_intent(fabrics, None, cluster)
    return [
        {"fabric": fabric.name, "object": pods.render_measuring_pod(fabric, intent.cluster, str(node))}
        for fabric in intent.fabrics
        for node in nodes
    ]


class FilterModule:
    """The plugin class by which Ansible finds the filter of this file."""

    def filters(self) -> dict[str, typing.Any]:
        return {"render_pods": render_pods}
