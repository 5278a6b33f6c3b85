# SPDX-License-Identifier: GPL-3.0-or-later

"""Send the archive of a run to a destination that persists after the AWX job or pod ends. The options are documented in
the module of the same name.
"""

from __future__ import annotations

import os
import typing

from ansible.errors import AnsibleError

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import (
    ENVIRONMENT,
    LOGIN_ENVIRONMENT,
    VARIABLE,
    ArchiveError,
    ArchiveFacts,
    ArchiveLogin,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import place_of
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._archive import (
    IN_ALL,
    PATIENCE,
    Attempts,
    probe_destination,
    send,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that sends the archive of a run to a destination, or checks the destination. It reads the
    destination and the credentials from a variable and the environment. They are not task arguments, so no log,
    callback or result contains them.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "state": {"type": "str", "choices": ["sent", "checked"], "default": "sent"},
        "keep": {"type": "int", "default": 100},
        "ca_path": {"type": "path"},
        "seconds": {"type": "float", "default": PATIENCE},
        "retries": {"type": "int", "default": 0},
        "delay": {"type": "float", "default": 10.0},
        "total_seconds": {"type": "float", "default": IN_ALL},
    }

    def work(self, options: Result, variables: Result) -> Result:
        return (
            self._check_archive_place(options, variables)
            if options["state"] == "checked"
            else self._send_run_archive(options, variables)
        )

    def _check_archive_place(self, options: Result, variables: Result) -> Result:
        """Check the destination of the archive without sending one, and store the outcome as a fact, which stage
        validate judges. Return the destination under the key ``place``. If no destination is configured, ``place`` is
        empty and no fact is stored.
        """
        shown = ""
        try:
            place = place_of(self._read_place_variable(variables))
            if place is None:
                return {"place": ""}
            shown = place.shown
            _check_keep(options["keep"])
            probe_destination(place, _read_archive_login(), options["ca_path"] or "", bool(self._task.check_mode))
            fact = ArchiveFacts(shown)
        except ArchiveError as error:
            fact = ArchiveFacts(shown, error.seen, error.remedy)
        FactFolder(options["facts_dir"], options["run"]).write("report_archive", value={"archive": fact})
        return {"place": fact.place}

    def _send_run_archive(self, options: Result, variables: Result) -> Result:
        place = place_of(self._read_place_variable(variables))
        if place is None:
            return {"place": "", "lines": [], "sent": False}
        _check_keep(options["keep"])
        if self._task.check_mode:
            line = f"check mode: the archive of this run would be sent to {place.shown}; nothing was sent"
            return {"place": place.shown, "lines": [line], "sent": False}
        try:
            attempts = Attempts(options["retries"], options["delay"], options["total_seconds"])
            sent = send(
                options["facts_dir"],
                options["run"],
                place,
                _read_archive_login(),
                options["ca_path"] or "",
                options["keep"],
                options["seconds"],
                attempts,
            )
        except ArchiveError as error:
            return {
                "failed": True,
                "msg": str(error),
                "failure": error.describe(),
                "again": error.again,
                "place": place.shown,
                "lines": [],
                "sent": False,
            }
        lines = [
            f"archive: {sent.place}, {sent.size} bytes",
            f"SHA-256: {sent.sha256}{f', in {sent.sum_place}' if sent.sum_place else ''}",
        ]
        lines += [f"{len(sent.removed)} older archives removed"] if sent.removed else []
        return {"place": sent.place, "sha256": sent.sha256, "removed": list(sent.removed), "lines": lines, "sent": True}

    def _read_place_variable(self, variables: Result) -> typing.Any:
        """Return the configured destination of archives: the value of the Ansible variable, or of the environment
        variable if the Ansible variable is not set. Return None if both are not set. An empty value means that no
        archive is sent.

        :raises ArchiveError: the Ansible variable cannot be read
        """
        try:
            said = self._templar.template(variables.get(VARIABLE))
            # text at once: an undefined value, or one of a vault, says so only when it is used
            said = str(said) if isinstance(said, str) else said
        except AnsibleError as error:
            seen = f"the variable {VARIABLE} could not be read ({type(error).__name__})"
            raise ArchiveError(
                seen, "Examine the variable: ansible-inventory --host localhost; provide the password of its vault"
            ) from None
        return os.environ.get(ENVIRONMENT) if said is None else said


def _check_keep(keep: int) -> None:
    if keep < 1:
        raise ArchiveError(
            f"{VARIABLE}_keep is {keep}, so not even the archive of this run would be kept", "Set 1 or more"
        )


def _read_archive_login() -> ArchiveLogin:
    return ArchiveLogin(**{name: os.environ.get(variable, "") for name, variable in LOGIN_ENVIRONMENT.items()})
