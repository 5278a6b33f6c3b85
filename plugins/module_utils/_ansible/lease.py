# SPDX-License-Identifier: GPL-3.0-or-later

"""Take, keep and release the Lease, a Kubernetes object by which only one run at a time may change a cluster. Every
module that changes the cluster uses this code.

The file ``lease.json`` in the folder of the run records that the run holds the Lease. If a run has recorded that and
then finds another holder, its facts are outdated and it must stop. A run without this file releases nothing, so that a
report without a cluster needs no API server.
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

from .._app.same_cluster import refuse_switched_cluster
from .._model.base.errors import RdmaError
from .._model.base.load import to_data
from .._model.run.guard import Guard
from .._model.run.lease import WAIT, Holder
from .._observe.kubernetes.client import Cluster
from .._observe.kubernetes.identity import read_cluster_uid
from .._observe.process import process
from .._run.cluster.lease import Keeper
from .._store.files import read_json, remove_file, write_text
from .cluster import end_by_interrupt, open_progress
from .fact_modules import find_folder

#: option of a module that needs the Lease; its documentation is the fragment linerate.rdma._options.lease
LEASE_SPEC: dict[str, typing.Any] = {"holder": {"type": "str"}}


@dataclasses.dataclass(frozen=True)
class HeldLease:
    """A cluster that the module may change, because the run holds the Lease.

    :ivar cluster: client of the API server, which verifies before each write that the run still holds the Lease
    :ivar run: ID of the run, or of the module if it belongs to no run, which becomes the owner of new objects
    :ivar guard: verifies before a write outside of the API server that the run still holds the Lease
    """

    cluster: Cluster
    run: str
    guard: Guard


@contextlib.contextmanager
def hold_lease(
    module: AnsibleModule, cluster: Cluster, wait: typing.Optional[float] = None
) -> typing.Iterator[HeldLease]:
    """Hold the Lease, as a context, while the module changes the cluster. The context provides a client whose writes
    stop as soon as the Lease is lost. In check mode the Lease is not taken, and every write is refused.

    :param cluster: client of the API server
    :param wait: longest wait in seconds for another run that holds the Lease; None for the default ``WAIT``
    :raises LeaseHeld: another run holds the Lease
    :raises LeaseLost: this run held the Lease before, and no longer does
    :raises OtherClusterError: the run began with another cluster
    :raises ApiError: the API server refuses, or cannot be reached
    """
    me, note = _identify_holder(module), _find_note_path(module)
    if module.check_mode:
        yield HeldLease(cluster, me.run, Guard(_refuse_in_check_mode))
        return
    end_by_interrupt()
    folder = find_folder(module)
    if folder is not None and not _is_noted(note, me):
        # a run that holds the Lease loses it on another cluster
        refuse_switched_cluster(folder, lambda: read_cluster_uid(cluster))
    keeper = Keeper(cluster, me, _name_module(module))
    _take_lease(module, keeper, _is_noted(note, me), wait)
    if note:
        write_text(note, json.dumps(to_data(me)) + "\n")
    try:
        with keeper.working(stays=bool(note)):
            guard = Guard(keeper.ask)
            yield HeldLease(cluster.guarded(guard.check), me.run, guard)
    except KeyboardInterrupt:
        if note:
            remove_file(note)
        raise


def _take_lease(module: AnsibleModule, keeper: Keeper, noted: bool, wait: typing.Optional[float] = None) -> None:
    """Take the Lease. While another run holds it, wait, and report the wait as progress.

    :param keeper: client of the Lease
    :param noted: whether this run has recorded that it holds the Lease
    :param wait: longest wait in seconds; None for the default ``WAIT``
    :raises LeaseHeld: another run still holds the Lease after the wait
    """
    with open_progress(module.params.get("progress_file")) as say:
        keeper.take(noted, time.sleep, say, WAIT if wait is None else wait)


@contextlib.contextmanager
def renew_lease(module: AnsibleModule, cluster: Cluster) -> typing.Iterator[Cluster]:
    """Provide a context with a client of the API server in which the Lease is renewed, if the run holds it. Otherwise
    the context provides ``cluster`` unchanged. It is for modules that change nothing, but may take longer than the
    Lease lasts without a renewal.

    :raises LeaseLost: the run has lost the Lease
    """
    note = _find_note_path(module)
    held_by_run = note and not module.check_mode and _is_noted(note, _identify_holder(module))
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(hold_lease(module, cluster)).cluster if held_by_run else cluster


def verify_lease(module: AnsibleModule, cluster: Cluster, seconds: float) -> None:
    """Verify that this run holds the Lease. It must be called immediately before a write on a node, because the API
    server cannot refuse such a write.

    :param seconds: longest duration of the write in seconds, for which the Lease must remain valid
    :raises LeaseHeld: another run holds the Lease
    :raises LeaseLost: this run has lost the Lease, or no run holds it
    :raises ApiError: the API server refuses, or cannot be reached
    """
    me, note = _identify_holder(module), _find_note_path(module)
    Keeper(cluster, me, _name_module(module)).assure(_is_noted(note, me), seconds)


def has_taken(module: AnsibleModule) -> bool:
    """Return whether this run has taken the Lease, and so may have written something in the cluster."""
    return _is_noted(_find_note_path(module), _identify_holder(module))


def release_lease(module: AnsibleModule, connect: typing.Callable[[AnsibleModule], Cluster]) -> bool:
    """Release the Lease. A run that never held the Lease does not contact the API server.

    :param connect: function that returns a client of the API server for the module
    :returns: whether this run held the Lease
    :raises ApiError: the API server refuses, or cannot be reached
    """
    me, note = _identify_holder(module), _find_note_path(module)
    if not note or module.check_mode or not _is_noted(note, me):
        return False
    remove_file(note)
    return Keeper(connect(module), me, _name_module(module)).release()


def _refuse_in_check_mode() -> float:
    raise RdmaError("in check mode nothing is written", "Run without --check")


def _name_module(module: AnsibleModule) -> str:
    """Return the name of the module without its collection."""
    return str(module._name).rpartition(".")[2]


def _identify_holder(module: AnsibleModule) -> Holder:
    """Return who holds the Lease: the run, or the process of the module if the module does not belong to a run."""
    run, host = module.params.get("run"), socket.gethostname()
    if run:
        return Holder(run, host, module.params.get("holder") or "")
    return Holder(f"{_name_module(module)}-{secrets.token_hex(3)}", host, process.read_identity(os.getpid()))


def _find_note_path(module: AnsibleModule) -> str:
    """Return the path of ``lease.json`` in the folder of the run. Return an empty string if the module does not belong
    to a run.
    """
    folder = find_folder(module)
    return os.path.join(folder.report_dir, "lease.json") if folder else ""


def _is_noted(note: str, me: Holder) -> bool:
    found = read_json(note) if note else None
    return isinstance(found, dict) and (found.get("run"), found.get("process")) == (me.run, me.process)
