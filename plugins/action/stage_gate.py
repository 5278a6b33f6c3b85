# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a stage from the facts of its run. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import FRAME_SPEC, judge_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import powers
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result, get_holder


class ActionModule(ControllerAction):
    """An action plugin that judges a stage by the facts in the folder of the run. The facts are not task arguments."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FRAME_SPEC,
        "run": {"type": "str", "required": True},
        "started": {"type": "str"},
        "changes": {"type": "list", "elements": "str", "default": []},
        "error": {"type": "str"},
    }
    OF_STAGE: typing.ClassVar[bool] = True

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["report_dir"], options["run"])
        for line in list_power_lines(options):
            Display().v(line)
        return {
            **judge_facts(options, folder, bool(self._task.check_mode)),
            "holder": get_holder(),
            "by_pods": bool(folder.start().by_pods),
        }


def list_power_lines(options: Result) -> list[str]:
    """Return a line for each file of docs/rbac that the intent needs, and for each that only variables or the cluster
    may need, for the output of stage validate with ``-v``. The result is empty for another stage, and for an invalid
    intent.

    :param options: options of the task
    """
    if options["stage"] != "validate":
        return []
    try:
        intent = parse_intent(options["fabrics"], options["waivers"], options["cluster"])
    except IntentError:
        return []
    return [f"rights: {finding.subject} - {finding.measured}; {finding.expected}" for finding in powers.check(intent)]
