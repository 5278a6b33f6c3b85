# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that render a training job and its NIC map. They only load their input and call the renderers. Each filter is
documented in the .yml file of its name.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.nic_map import list_members
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import mark_intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import ObservedSubnets
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nic_map import parse_nic_map
from ansible_collections.linerate.rdma.plugins.module_utils._render.job import job
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import nic_map
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_filter

Data = dict[str, typing.Any]


@guard_filter
def render_job(wanted: typing.Any, fabrics: typing.Any, cluster: typing.Any) -> list[Data]:
    """Render the Kubernetes objects of a training job, each as a mapping with its ``object`` and the name of its
    ``fabric``, which is empty if the job names no fabric.

    :param wanted: value of ``rdma_job``
    :param fabrics: value of ``rdma_fabrics``
    :param cluster: value of ``rdma_cluster``
    """
    intent, job_intent = parse_intent(fabrics, None, cluster), load(Job, wanted, "rdma_job")
    return [
        {"fabric": job_intent.fabric or "", "object": item}
        for item in job.render(job_intent, intent.fabrics, intent.cluster)
    ]


@guard_filter
def render_nic_map(
    fabrics: typing.Any,
    name: typing.Any,
    fabric: typing.Any,
    hcas: typing.Any,
    subnets: typing.Any = None,
    before: typing.Any = "",
    cluster: typing.Any = None,
) -> Data:
    """Render the ConfigMap with the NIC map of one fabric. Return a mapping with the ConfigMap as ``object`` and the
    name of the ``fabric``.

    :param fabrics: value of ``rdma_fabrics``
    :param name: name of the ConfigMap
    :param fabric: name of the fabric
    :param hcas: fact ``hcas`` of each node, by node name
    :param subnets: fact ``subnets`` of each node, by node name; None if there are no such facts
    :param before: text of the existing map, whose addresses are kept; empty if there is no map
    :param cluster: value of ``rdma_cluster``
    :raises AnsibleFilterError: the fabric does not exist, or its HCAs are not known on all nodes
    """
    intent = parse_intent(fabrics, None, cluster)
    wanted = next((item for item in intent.fabrics if item.name == fabric), None)
    if wanted is None:
        raise RdmaError(f"no fabric has the name '{fabric}'")
    nodes, seen = (
        load(dict[str, ObservedHcas], hcas, "hcas"),
        load(dict[str, ObservedSubnets], subnets or {}, "subnets"),
    )
    members, why = list_members(wanted, nodes, seen)
    unread = [f"{node}: {item.error}" for node, item in nodes.items() if item.value is None]
    if why or unread:
        raise RdmaError(f"a NIC map of {fabric} would be incomplete: {why or '; '.join(unread)}")
    made = nic_map.list_nic_lines(wanted, members, parse_nic_map(str(before)).lines)
    config_map = nic_map.render_config_map(wanted, str(name), made)
    return {"fabric": wanted.name, "object": mark_intent(config_map, intent.cluster.intent_name)}


class FilterModule:
    """The plugin class by which Ansible finds the filters of this file."""

    def filters(self) -> dict[str, typing.Any]:
        return {"render_job": render_job, "render_nic_map": render_nic_map}
