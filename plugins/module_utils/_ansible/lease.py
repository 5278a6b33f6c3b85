# SPDX-License-Identifier: GPL-3.0-or-later

"""Where modules get the right to change a cluster: the one place in which they take, keep and give back the Lease of
their run.

That a run holds the Lease is also kept in its folder, as ``lease.json``. A run that held it and finds another one in it
has lost what it built on, and a report that nobody needs a cluster for gives nothing back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import socket
import time
import typing

from ansible.module_utils.basic import AnsibleModule

from .._model.base.errors import RdmaError
from .._model.base.load import to_data
from .._model.run.guard import Guard
from .._model.run.lease import WAIT, Holder
from .._observe.kubernetes.client import Cluster
from .._observe.process import process
from .._run.cluster.lease import Keeper
from .._store.files import read_json, remove, write_text
from .cluster import end_by_interrupt, progress
from .fact_modules import find_folder

#: option of a module that needs the Lease; its documentation is the fragment linerate.rdma._options.lease
LEASE_SPEC: dict[str, typing.Any] = {"holder": {"type": "str"}}


@dataclasses.dataclass(frozen=True)
class HeldLease:
    """A cluster that may be changed.

    :ivar cluster: the API server; before each write it is asked whether the run still holds the Lease
    :ivar run: who owns what is made now
    :ivar guard: for what is written elsewhere
    """

    cluster: Cluster
    run: str
    guard: Guard


@contextlib.contextmanager
def working(module: AnsibleModule, cluster: Cluster) -> typing.Iterator[HeldLease]:
    """Hold the Lease while the module changes the cluster. In check mode nothing is changed, and nothing held.

    :raises LeaseHeld: another run has it
    :raises LeaseLost: this run had it
    :raises ApiError: the server refuses, or cannot be reached
    """
    me, note = _identify_holder(module), _find_note_path(module)
    if module.check_mode:
        yield HeldLease(cluster, me.run, Guard(_refuse_in_check_mode))
        return
    end_by_interrupt()
    keeper = Keeper(cluster, me, _name_module(module))
    _take_lease(module, keeper, _is_noted(note, me))
    if note:
        write_text(note, json.dumps(to_data(me)) + "\n")
    try:
        with keeper.working(stays=bool(note)):
            guard = Guard(keeper.ask)
            yield HeldLease(cluster.guarded(guard.check), me.run, guard)
    except KeyboardInterrupt:
        if note:
            remove(note)
        raise


def _take_lease(module: AnsibleModule, keeper: Keeper, noted: bool) -> None:
    """Take the Lease, and tell the user while another run has it.

    :raises LeaseHeld: another run has it after the wait
    """
    with progress(module.params.get("progress_file")) as say:
        keeper.take(noted, time.sleep, say, WAIT)


@contextlib.contextmanager
def waiting(module: AnsibleModule, cluster: Cluster) -> typing.Iterator[Cluster]:
    """For a module that changes nothing, and may take longer than a Lease lasts between two modules: keep it, if the
    run holds it.

    :raises LeaseLost: it was lost
    """
    note = _find_note_path(module)
    held_by_run = note and not module.check_mode and _is_noted(note, _identify_holder(module))
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(working(module, cluster)).cluster if held_by_run else cluster


def assure(module: AnsibleModule, cluster: Cluster, seconds: float) -> None:
    """Right before something is written on a node, where no API server watches.

    :param seconds: that the write may take
    :raises LeaseHeld: another run has the Lease
    :raises LeaseLost: this run has lost it, or has never taken it
    :raises ApiError: the server refuses, or cannot be reached
    """
    me, note = _identify_holder(module), _find_note_path(module)
    Keeper(cluster, me, _name_module(module)).assure(_is_noted(note, me), seconds)


def has_taken(module: AnsibleModule) -> bool:
    """Return whether this run has taken the Lease, and so may have written something in the cluster."""
    return _is_noted(_find_note_path(module), _identify_holder(module))


def release(module: AnsibleModule, connect: typing.Callable[[AnsibleModule], Cluster]) -> bool:
    """Give the Lease back; False where this run does not hold it. A run that never held it asks no API server.

    :raises ApiError: the server refuses, or cannot be reached
    """
    me, note = _identify_holder(module), _find_note_path(module)
    if not note or module.check_mode or not _is_noted(note, me):
        return False
    remove(note)
    return Keeper(connect(module), me, _name_module(module)).release()


def _refuse_in_check_mode() -> float:
    raise RdmaError("in check mode nothing is written", "Run without --check")


def _name_module(module: AnsibleModule) -> str:
    """Without its collection."""
    return str(module._name).rpartition(".")[2]


def _identify_holder(module: AnsibleModule) -> Holder:
    """Return the holder: the run, or a module that belongs to none."""
    run, host = module.params.get("run"), socket.gethostname()
    if run:
        return Holder(run, host, module.params.get("holder") or "")
    return Holder(f"{_name_module(module)}-{secrets.token_hex(3)}", host, process.identity(os.getpid()))


def _find_note_path(module: AnsibleModule) -> str:
    """Path of the note in the run's folder; empty for a module that belongs to no run."""
    folder = find_folder(module)
    return os.path.join(folder.report_dir, "lease.json") if folder else ""


def _is_noted(note: str, me: Holder) -> bool:
    found = read_json(note) if note else None
    return isinstance(found, dict) and (found.get("run"), found.get("process")) == (me.run, me.process)
