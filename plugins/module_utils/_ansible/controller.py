# SPDX-License-Identifier: GPL-3.0-or-later

"""Collect the prerequisites on the controller for the stages that use the API server: libraries, Helm, credentials and
rights. A missing prerequisite is part of the result and not an error.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
import typing

from ansible.module_utils.basic import AnsibleModule

from .._model.base.errors import RdmaError
from .._model.intent.intent import Intent
from .._model.kubernetes.controller import ControllerFacts, HelmFacts
from .._model.kubernetes.rights_needed import list_needed_rights
from .._observe.kubernetes.client import Cluster
from .._observe.kubernetes.errors import ApiError
from .._observe.kubernetes.rights import observe
from .._observe.kubernetes.room import observe as observe_room
from .._observe.operators.sriov_operator import namespace_of_operator
from .._observe.process.command import run
from .cluster import FIRST_ANSWER, connect, get_library_version, select_options, wait_for_answer
from .credentials import find_credentials


def inspect_controller(
    module: AnsibleModule,
    intent: typing.Optional[Intent],
    helm: typing.Optional[str],
    stages: typing.Sequence[str],
    limit: float = FIRST_ANSWER,
) -> ControllerFacts:
    """Return which prerequisites of the stages that use the API server are present on the controller. Contact the API
    server if the user has configured it.

    :param intent: intent that determines the required rights; None if it is invalid
    :param helm: path or name of the helm program; None if it is not needed
    :param stages: stages of this invocation that use the API server
    :param limit: limit in seconds for the first answer of the API server
    """
    seen = ControllerFacts(sys.executable, tuple(stages), helm=find_helm(helm) if helm is not None else None)
    version = get_library_version()
    if not version:
        return seen
    found = find_credentials(select_options(module), os.environ)
    seen = dataclasses.replace(seen, library=version, where=found.where, named=found.named)
    if not found.named:
        return seen
    try:
        cluster, server = wait_for_answer(limit, lambda: _first_answer(module), found.where)
    except ApiError as error:
        return dataclasses.replace(seen, error=error.seen, remedy=error.remedy)
    seen = dataclasses.replace(seen, server=server)
    try:
        seen = dataclasses.replace(seen, room=observe_room(cluster))
    except RdmaError as error:
        seen = dataclasses.replace(seen, room_error=error.seen)
    if intent is None:
        return seen
    try:
        return dataclasses.replace(
            seen,
            rights=observe(
                cluster, list_needed_rights(intent, namespace_of_operator(cluster, intent.cluster.operator_namespace))
            ),
        )
    except ApiError as error:
        return dataclasses.replace(seen, rights_error=error.seen)


def _first_answer(module: AnsibleModule) -> tuple[Cluster, str]:
    cluster = connect(module)
    return cluster, cluster.version()


def find_helm(binary: str) -> HelmFacts:
    """Run helm and return its version, such as ``3.19.4`` for the output ``v3.19.4+g7cfb6e4``. If helm cannot be run,
    or does not report its version, return the error instead.

    :param binary: path or name of the program
    """
    path = shutil.which(os.path.expanduser(binary))
    if path is None:
        return HelmFacts(
            binary,
            error=(
                "the program does not exist in the PATH of the controller"
                if os.sep not in binary
                else "the program does not exist"
            ),
        )
    done = run([path, "version", "--short"], 20)
    match = re.search(r"\bv(\d[^\s+]*)", done.stdout)
    return HelmFacts(
        binary,
        match[1] if match and not done.failure else "",
        done.failure or ("" if match else "the program does not report its version"),
    )
