# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter that opens the linter to the role network. A thin door, documented in lint_network.yml."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.check import held, lint_all, remaining
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.sriov_policy import cluster_before
from ansible_collections.linerate.rdma.plugins.module_utils._model.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.sriov_operator import OperatorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import sriov_operator
from ansible_collections.linerate.rdma.plugins.module_utils._render import network
from ansible_collections.linerate.rdma.plugins.plugin_utils._filters import filter_of

Data = typing.Dict[str, typing.Any]


@filter_of
def lint_network(
    rendered: typing.Any, fabrics: typing.Any, cluster: typing.Any, waivers: typing.Any, operators: typing.Any, hcas: typing.Any, nodes: typing.Any
) -> Data:
    """What speaks against the rendered policies, and the objects that may be applied."""
    intent = parse_intent(fabrics, waivers, cluster)
    seen = load(OperatorFacts, operators, "operators")
    observed = load(typing.Dict[str, ObservedHcas], hcas, "hcas")
    world = cluster_before(seen, {name: item.value for name, item in observed.items() if item.value is not None}, intent.cluster)
    policies = [(item["fabric"], sriov_operator.policy(item["object"])) for item in rendered["objects"] if item["object"]["kind"] == "SriovNetworkNodePolicy"]
    findings = lint_all(intent.fabrics, policies, world, [str(node) for node in nodes])
    stopped = held(findings, intent.waivers)
    return {
        "objects": network.without(remaining(rendered["objects"], stopped), intent, stopped),
        "lint": {"findings": to_data([item for mine in findings.values() for item in mine]), "held": stopped, "errors": list(seen.errors)},
    }


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {"lint_network": lint_network}
