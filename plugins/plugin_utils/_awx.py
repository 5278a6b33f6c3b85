# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The interface to the modules of awx.awx, which only users with AWX need. These modules check their arguments and
change the objects of AWX.
"""

from __future__ import annotations

import os

from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.awx import AwxObject
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import Result, Spec

#: which AWX, and which collection speaks to it; the documentation is the fragment linerate.rdma._options.awx
AWX_SPEC: Spec = {
    "controller_host": {"type": "str"},
    "controller_username": {"type": "str"},
    "controller_password": {"type": "str", "no_log": True},
    "controller_oauthtoken": {"type": "str", "no_log": True},
    "validate_certs": {"type": "bool"},
    "collection": {"type": "str", "choices": ["awx.awx", "ansible.controller"], "default": "awx.awx"},
    "name": {"type": "str", "default": "linerate.rdma"},
    "organization": {"type": "str", "required": True},
    "approval_seconds": {"type": "int", "default": 0},
}
_WHERE = ("controller_host", "controller_username", "controller_password", "controller_oauthtoken", "validate_certs")


class Awx:
    """A client that changes objects of one AWX by running the modules of the AWX collection.

    :param action: action plugin that runs the modules
    :param options: options that were validated by AWX_SPEC
    :param variables: variables of the host for which the task runs
    :raises RdmaError: the AWX collection is not installed, or no AWX host is configured
    """

    def __init__(self, action: ActionBase, options: Result, variables: Result) -> None:
        self._action, self._variables = action, variables
        #: in check mode: whether something would be made, which what comes later may name
        self._pending = False
        self._collection: str = options["collection"]
        self._where = {name: options[name] for name in _WHERE if options[name] is not None}
        found = action._shared_loader_obj.module_loader.find_plugin_with_context(f"{self._collection}.job_template")
        if not found.resolved:
            seen = f"the collection {self._collection}, whose modules create the objects of AWX, is not installed"
            raise RdmaError(
                seen,
                f"Install it together with this collection: ansible-galaxy collection install {self._collection}",
            )
        if not self._where.get("controller_host") and not any(
            os.environ.get(name) for name in ("CONTROLLER_HOST", "TOWER_HOST")
        ):
            raise RdmaError(
                "the address of AWX is not set", "Set awx_controller_host, or CONTROLLER_HOST in the environment"
            )

    def bring(self, one: AwxObject) -> bool:
        """Create, change or remove one object by running its module.

        :param one: object of AWX, with the arguments of its module
        :returns: whether the object changed, or would change in check mode. After a change was predicted in check mode,
            a failure counts as a change as well, since the object may refer to one that would exist by then. An object
            that AWX is already deleting counts as unchanged
        :raises RdmaError: AWX or the module refuses the change
        """
        arguments = {**self._where, **one.arguments}
        answer: Result = self._action._execute_module(
            module_name=f"{self._collection}.{one.kind}", module_args=arguments, task_vars=self._variables
        )
        if answer.get("failed") and self._pending:
            # what it names is not there yet
            return True
        if answer.get("failed") and _GOING in str(answer.get("msg")):
            return False
        if answer.get("failed"):
            # what the module was given is in the answer as well, and may hold a secret
            said = str(answer.get("msg") or answer.get("module_stderr") or "no message")
            raise RdmaError(f"AWX: {one.kind} '{one.name}': {said[:_LONGEST]}", _choose_remedy(said))
        changed = bool(answer.get("changed"))
        self._pending |= changed and bool(self._action._task.check_mode)
        return changed


#: AWX deletes an inventory after it has answered, and says so to whoever asks again meanwhile
_GOING = "already pending deletion"
#: characters of a refusal that are shown
_LONGEST = 2000

#: what AWX says, and what to do
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        "Playbook not found for project",
        (
            "Check the last update of the project in AWX: the update must have found the repository of the"
            " playbooks, at that branch"
        ),
    ),
    ("being used by running jobs", "Wait until its jobs and updates have ended, or cancel them, then rerun"),
    ("in use", "First delete the objects that use it: credentials of this type"),
    ("Failed to get token", "Check the address, the user and the password, or set a token"),
    ("Invalid Authentication Credentials", "Check the user and the password, or the token"),
)


def _choose_remedy(said: str) -> str:
    return next(
        (remedy for text, remedy in _REMEDIES if text in said),
        "Correct the error that AWX reports, then rerun: existing objects are kept",
    )
