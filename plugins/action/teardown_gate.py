# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a teardown from the facts of its run. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import count_findings
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.teardown import make_teardown_stats
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that judges a teardown, and fails if the teardown is not complete. Waivers do not apply."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "fabrics": {"type": "raw", "required": True},
        "cluster": {"type": "raw"},
        "operator_removed": {"type": "bool", "default": False},
    }

    def work(self, options: Result, variables: Result) -> Result:
        intent = parse_intent(options["fabrics"], None, options["cluster"])
        facts, _counts = read_facts(FactFolder(options["facts_dir"], options["run"]), "teardown")
        seen = load(Facts, {**facts, "operator_removed": options["operator_removed"]}, "facts")
        gate = judge(check(intent, seen))
        removed = sum(item.action == "deleted" for item in seen.removed or ())
        told = make_teardown_stats(gate, options["run"], seen.check_mode, removed, options["facts_dir"])
        answer: Result = {"findings": count_findings(gate.judged), "stats": told}
        if gate.open:
            return {**answer, "msg": f"linerate.rdma: {told['summary']}"}
        lines = [
            escape.escape_line(f"{item.check} {item.subject}: {item.status}, {item.measured}. {item.why} {item.remedy}")
            for item in gate.closing()
        ]
        return {**answer, "failed": True, "msg": "The teardown is not complete.\n" + "\n".join(lines)}
