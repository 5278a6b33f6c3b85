# SPDX-License-Identifier: GPL-3.0-or-later

"""Render and lint the objects of the fabrics. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_answers, read_value
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OperatorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.network import plan
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import refuse_limit


class ActionModule(ControllerAction):
    """An action plugin that computes from facts of the run and the intent which Kubernetes objects to apply, and stores
    this plan as a fact.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "fabrics": {"type": "raw", "required": True},
        "waivers": {"type": "raw"},
        "cluster": {"type": "raw"},
    }

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["facts_dir"], options["run"])
        nodes = folder.start().nodes
        if not self._task.check_mode:
            # its objects select nodes by label, and drain or reboot them
            refuse_limit(self._loader, variables.get("groups", {}), nodes, "stage network")
        intent = parse_intent(options["fabrics"], options["waivers"], options["cluster"])
        addresses = load(AddressFacts, read_value(folder, "addresses", "addresses"), "addresses")
        operators = load(OperatorFacts, read_value(folder, "operators_before_network", "operators"), "operators")
        platforms = load(dict[str, ObservedPlatform], folder.of_nodes("platform", nodes), "platform")
        planned = plan(intent, nodes, read_answers(folder), addresses, operators, platforms)
        folder.write("network_objects", value=planned)
        return {
            "objects": len(planned.objects),
            "hosts": len(planned.hosts),
            "held": sorted(planned.lint.held),
            "unmade": sorted(planned.unmade),
        }
