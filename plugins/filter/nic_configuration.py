# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that renders objects for NVIDIA's NIC configuration operator for playbooks. It is documented in
render_nic_configuration.yml.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.nic_configuration import render_templates
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_filter

NAMESPACE = "nvidia-network-operator"


@guard_filter
def render_nic_configuration(
    fabrics: typing.Any, cluster: typing.Any = None, nic_types: typing.Any = None, namespace: str = NAMESPACE
) -> list[dict[str, typing.Any]]:
    """Render the NicConfigurationTemplates of the fabrics with VFs, each as a mapping with its ``object`` and an empty
    ``fabric``.

    :param fabrics: value of ``rdma_fabrics``
    :param cluster: value of ``rdma_cluster``
    :param nic_types: PCI device ids of the HCAs, by name of the fabric
    :param namespace: namespace of the templates
    """
    intent = parse_intent(fabrics, None, cluster)
    types = load(dict[str, tuple[str, ...]], nic_types or {}, "nic_types")
    return [
        {"fabric": "", "object": item}
        for item in render_templates(intent.fabrics, intent.cluster, types, str(namespace))
    ]


class FilterModule:
    """The plugin class by which Ansible finds the filter of this file."""

    def filters(self) -> dict[str, typing.Any]:
        return {"render_nic_configuration": render_nic_configuration}
