# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the cluster that an invocation or a module uses with that of a run. An intent on two clusters has objects of
the same names on both, so a wrong kubeconfig would change or remove those of the other cluster.
"""

from __future__ import annotations

import contextlib
import shlex
import typing

from .._check.resume import find_server
from .._model.base.errors import RdmaError
from .._model.run.facts import RunStart
from .._store.facts import FactFolder
from .._store.files import FileError
from .._store.run_start import read_start

#: what begins on another cluster than that of the run in the report folder
Begun = typing.Literal["teardown", "run"]


class OtherClusterError(RdmaError):
    """The error for a teardown, a new run or a module that uses another cluster than the run in the report folder."""


def read_run_uid(folder: FactFolder, start: typing.Optional[RunStart] = None) -> str:
    """Return the uid of the namespace kube-system of the cluster of a run, which identifies the cluster. It comes from
    the start record, or else from the fact that stage validate has stored. Return an empty text if it is not known.

    :param start: start record of the run; None if it is not known
    """
    if start is not None and start.cluster_uid:
        return start.cluster_uid
    with contextlib.suppress(FileError):
        fact = folder.read("access")
        uid = fact.value.get("cluster_uid") if fact is not None and isinstance(fact.value, dict) else None
        return uid if isinstance(uid, str) else ""
    return ""


def refuse_other_cluster(runs_dir: str, access: str, cluster_uid: str, begun: Begun = "teardown") -> None:
    """Raise an error if the run in a report folder used another cluster than this invocation. If the uid of the
    namespace kube-system is unknown for the run or for this invocation, the URLs of the API servers are compared
    instead. If the folder has no readable run, no error is raised.

    :param runs_dir: report folder of the stages
    :param access: source of the credentials, context and API server of this invocation
    :param cluster_uid: uid of the namespace kube-system of the cluster of this invocation; empty if it is not known
    :param begun: whether a teardown or a new run of the stages begins
    :raises OtherClusterError: the run used another cluster
    """
    start = _read_start(runs_dir)
    if start is None:
        return
    then = read_run_uid(FactFolder(runs_dir, start.run), start)
    servers = find_server(start.access), find_server(access)
    if then and cluster_uid:
        if then == cluster_uid:
            return
        seen = f"its namespace kube-system had the uid {then}, and now it has the uid {cluster_uid}"
    elif all(servers) and servers[0] != servers[1]:
        seen = f"it used {servers[0]}, and this {begun} uses {servers[1]}"
    else:
        return
    used = f"Run {start.run} in {runs_dir} used another cluster than this {begun}: {seen}"
    if begun == "teardown":
        raise OtherClusterError(
            f"{used}. Nothing was removed",
            "Set rdma_kubeconfig to the cluster of the run. If this cluster is the right one, set rdma_report_dir to"
            " the report folder of a run on it, or to a new folder. Then run the teardown again",
        )
    raise OtherClusterError(
        f"{used}. Nothing was started",
        "Select the cluster of the run: kubectl config use-context CONTEXT, or -e rdma_kubeconfig=FILE. If this cluster"
        " is the right one, name another report folder (-e rdma_report_dir=FOLDER), or move the old report:"
        f" mv {shlex.quote(runs_dir)} {shlex.quote(f'{runs_dir}-before')}. Then start the run again",
    )


def refuse_switched_server(folder: FactFolder, server: str, read_uid: typing.Callable[[], str]) -> None:
    """Raise an error if a module of a run uses another API server than the run, unless the uid of the cluster proves
    that both serve the same cluster. The kubeconfig, or its current context, may have been changed since the run began.

    :param folder: fact folder of the run
    :param server: API server of the module, in the form of :func:`find_server`
    :param read_uid: function without arguments that asks this API server for the uid of the namespace kube-system, and
        returns it, or an empty text if it cannot be read
    :raises OtherClusterError: the API server is another one
    """
    start = _read_start(folder.report_dir, folder.run)
    then = find_server(start.access) if start is not None else ""
    if start is None or not then or then.rstrip("/") == server.rstrip("/"):
        return
    uid = read_run_uid(folder, start)
    if not uid or uid != read_uid():
        _raise_switched(folder.run, f"it began with {then}, and now it would use {server}")


def refuse_switched_cluster(folder: FactFolder, read_uid: typing.Callable[[], str]) -> None:
    """Raise an error if a run that is about to take the Lease uses another cluster than at its begin. No error is
    raised if the uid of the cluster is unknown, either at the begin or now.

    :param folder: fact folder of the run
    :param read_uid: function without arguments that returns the uid of the namespace kube-system of the cluster that
        the run uses now; empty if it cannot be read
    :raises OtherClusterError: the cluster is another one
    """
    then = read_run_uid(folder, _read_start(folder.report_dir, folder.run))
    now = read_uid() if then else ""
    if now and now != then:
        _raise_switched(folder.run, f"its namespace kube-system had the uid {then}, and now it has the uid {now}")


def _raise_switched(run: str, seen: str) -> typing.NoReturn:
    raise OtherClusterError(
        f"Run {run} began with another cluster than the kubeconfig selects now: {seen}. Nothing was changed there",
        "Do not switch the current context of the kubeconfig during a run: give the run a kubeconfig of its own"
        " (kubectl config view --minify --raw --context CONTEXT > FILE, then -e rdma_kubeconfig=FILE). Then run all"
        " stages again",
    )


def _read_start(report_dir: str, run: str = "") -> typing.Optional[RunStart]:
    """Return the start record of the run in a folder. Return None if there is no record, if it cannot be read, or if it
    belongs to another run than ``run``.

    :param run: ID of the expected run; empty to accept any run
    """
    try:
        start = read_start(report_dir)
    except FileError:
        return None
    return start if start is not None and run in ("", start.run) else None
