# SPDX-License-Identifier: GPL-3.0-or-later

"""Begin a run if it is new, and decide whether a stage may start. The options are documented in the module of the same
name.
"""

from __future__ import annotations

import dataclasses
import typing

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.release import __version__ as ansible_version
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import (
    FRAME_SPEC,
    begin_stage,
    pass_over,
    resume_run,
    start_run,
)
from ansible_collections.linerate.rdma.plugins.module_utils._app.same_cluster import refuse_other_cluster
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.disruption_override import (
    DISRUPTION,
    OF_JOB,
    check_override,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._access import (
    access_of,
    read_boots_of,
    read_cluster_uid_of,
    show,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import (
    ControllerAction,
    Result,
    by_pods,
    get_holder,
    refuse_folder_in_use,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._first_cause import find_cause
from ansible_collections.linerate.rdma.plugins.plugin_utils._host_keys import count_unchecked_hosts
from ansible_collections.linerate.rdma.plugins.plugin_utils._variables import (
    describe_installer,
    find_misspelt_of_nodes,
    find_mistyped,
    find_origins,
    list_names,
    read_as_written,
)

#: variables that name an image, beside the intent
IMAGES = ("rdma_observers_image",)
#: variables that hold the intent
INTENT = ("rdma_fabrics", "rdma_waivers", "rdma_cluster")
#: connection to the machine that runs Ansible
_HERE = "local"


class ActionModule(ControllerAction):
    """An action plugin that begins a stage with the nodes of the inventory. The nodes are not task arguments."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FRAME_SPEC,
        "resume_from": {"type": "str", "default": ""},
        "facts_max_age": {"type": "int", "default": 3600},
        "later": {"type": "bool", "default": False},
        "started": {"type": "str"},
    }
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "required_if": [("later", True, ["run"])],
        "required_by": {"started": "run"},
    }
    OF_STAGE: typing.ClassVar[bool] = True

    def work(self, options: Result, variables: Result) -> Result:
        """Begin the stage, and the run if it is new. With the option ``later``, record all later stages as not run
        instead. Return the result of the task.

        :raises RdmaError: the inventory sets another connection for localhost, so that the API server would be called
            from another machine
        """
        transport = str(getattr(self._connection, "transport", ""))
        if transport != _HERE:
            remedy = (
                "Remove ansible_connection of localhost from the inventory, and from the variables of the group all"
            )
            raise RdmaError(
                f"localhost is reached by the connection {transport}; expected {_HERE}. Nothing was started", remedy
            )
        check_mode = bool(self._task.check_mode)
        if options["later"]:
            of_run = FactFolder(options["report_dir"], options["run"])
            return pass_over(
                options,
                of_run,
                check_mode,
                *(variables.get(name) or () for name in ("ansible_run_tags", "ansible_skip_tags")),
            )
        folder = self._open_run_folder(options, variables, check_mode)
        return {
            **begin_stage(options, folder, check_mode),
            "holder": get_holder(),
            "by_pods": bool(folder.start().by_pods),
        }

    def _open_run_folder(self, options: Result, variables: Result, check_mode: bool) -> FactFolder:
        """Return the folder of the run, which is one of three: the run of the option ``run``, an older run that is
        resumed, or a new run.

        :raises RdmaError: the run cannot be begun or resumed, or another run still uses the folder
        """
        if options["run"]:
            return FactFolder(options["report_dir"], options["run"])
        refuse_folder_in_use(options["report_dir"])
        access = access_of(variables, self._templar.template)
        show(access)
        asked, of_job = (self._templar.template(variables.get(name)) for name in (DISRUPTION, OF_JOB))
        check_override(asked, options["cluster"], of_job)
        nodes = variables.get("groups", {}).get("rdma_nodes", [])
        values = find_mistyped(variables, self._templar.template)
        strict = "rdma_strict_images" in values or boolean(
            self._template_variable(variables, "rdma_strict_images", False)
        )
        images = {name: str(self._template_variable(variables, name, "")) for name in IMAGES if name in variables}
        uid = read_cluster_uid_of(variables, self._templar.template) if access else ""
        if options["resume_from"]:
            boots = read_boots_of(variables, self._templar.template) if access else {}
            warn = Display().warning
            return resume_run(options, nodes, check_mode, strict, images, get_holder(), access, uid, boots, warn)
        if access:
            refuse_other_cluster(options["report_dir"], access, uid, "run")
        written = read_as_written(nodes, variables)
        of_nodes = find_misspelt_of_nodes(written, variables)
        names = (*list_names(variables), *of_nodes)
        start = RunStart(
            "",
            "",
            check_mode,
            tuple(map(str, nodes)),
            names,
            by_pods=tuple(by_pods(nodes, variables)),
            unchecked_hosts=count_unchecked_hosts(written, variables.get("hostvars")),
            images=images,
            strict_images=strict,
            access=access,
            process=get_holder(),
            cluster_uid=uid,
        )
        places = {**of_nodes, **find_origins(variables, (*INTENT, *names, *values))}
        cause = find_cause(variables.get("ansible_inventory_sources"))
        start = dataclasses.replace(
            start,
            mistyped=values,
            origins=places,
            by=describe_installer(variables),
            inventory_error=cause.text,
            inventory_kind=cause.kind,
            inventory_where=cause.where,
        )
        return start_run(options, start, ansible_version)

    def _template_variable(self, variables: Result, name: str, unsaid: typing.Any) -> typing.Any:
        """Return the value of an inventory variable after templating.

        :param unsaid: result if the variable is not set or null
        """
        return self._templar.template(variables[name]) if variables.get(name) is not None else unsaid
