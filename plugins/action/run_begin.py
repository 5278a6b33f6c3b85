# SPDX-License-Identifier: GPL-3.0-or-later

"""Begin a run without stages, in which single modules store their facts. The options are documented in the module of
the same name.
"""

from __future__ import annotations

import os
import typing

from ansible.release import __version__ as ansible_version

from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import FRAME_SPEC, start_run
from ansible_collections.linerate.rdma.plugins.module_utils._app.same_cluster import refuse_other_cluster
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.disruption_override import (
    DISRUPTION,
    OF_JOB,
    check_override,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.plugin_utils._access import access_of, read_cluster_uid_of, show
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import (
    ControllerAction,
    Result,
    by_pods,
    get_holder,
    refuse_folder_in_use,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import refuse_limit


class ActionModule(ControllerAction):
    """An action plugin that begins a run with the nodes of the inventory. The nodes are not task arguments."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **{name: FRAME_SPEC[name] for name in ("report_dir", "fabrics", "waivers", "cluster")},
        "all_nodes": {"type": "bool", "default": False},
        "runs_dir": {"type": "path"},
    }

    def work(self, options: Result, variables: Result) -> Result:
        nodes = variables.get("groups", {}).get("rdma_nodes", [])
        if options["all_nodes"] and not self._task.check_mode:
            refuse_limit(self._loader, variables.get("groups", {}), map(str, nodes), "the teardown")
        if options["all_nodes"]:
            asked, of_job = (self._templar.template(variables.get(name)) for name in (DISRUPTION, OF_JOB))
            check_override(asked, options["cluster"], of_job)
        refuse_folder_in_use(options["report_dir"])
        pods = by_pods(nodes, variables)
        access = access_of(variables, self._templar.template)
        show(access)
        uid = read_cluster_uid_of(variables, self._templar.template) if access else ""
        if options["runs_dir"] and access:
            refuse_other_cluster(options["runs_dir"], access, uid)
        check_mode = bool(self._task.check_mode)
        start = RunStart(
            "",
            "",
            check_mode,
            tuple(map(str, nodes)),
            by_pods=tuple(pods),
            access=access,
            process=get_holder(),
            cluster_uid=uid,
        )
        folder = start_run(options, start, ansible_version)
        return {
            "run": folder.run,
            "report_dir": os.path.abspath(folder.report_dir),
            "holder": get_holder(),
            "by_pods": bool(pods),
        }
