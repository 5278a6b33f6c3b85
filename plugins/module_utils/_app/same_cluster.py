# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the cluster that a teardown uses with that of the run in the report folder. An intent on two clusters has
objects of the same names on both, so a wrong kubeconfig would remove those of the other cluster.
"""

from __future__ import annotations

import contextlib

from .._check.resume import find_server
from .._model.base.errors import RdmaError
from .._store.facts import FactFolder
from .._store.files import FileError
from .._store.run_start import read_start


class OtherClusterError(RdmaError):
    """The error that the run in the report folder used another cluster than a teardown."""


def read_run_uid(folder: FactFolder) -> str:
    """Return the uid of the namespace kube-system that stage validate of a run has read. Return an empty text if it is
    not known.
    """
    with contextlib.suppress(FileError):
        fact = folder.read("access")
        uid = fact.value.get("cluster_uid") if fact is not None and isinstance(fact.value, dict) else None
        return uid if isinstance(uid, str) else ""
    return ""


def refuse_other_cluster(runs_dir: str, access: str, cluster_uid: str) -> None:
    """Raise an error if the run in a report folder used another cluster. If the uid of the namespace kube-system is not
    known on both sides, the URLs of the API servers decide. A folder without a readable run proves nothing.

    :param runs_dir: report folder of the stages
    :param access: source of the credentials, context and API server of this invocation
    :param cluster_uid: uid of the namespace kube-system of its cluster; empty if it is not known
    :raises OtherClusterError: the run used another cluster
    """
    try:
        start = read_start(runs_dir)
    except FileError:
        return
    if start is None:
        return
    then = read_run_uid(FactFolder(runs_dir, start.run))
    servers = find_server(start.access), find_server(access)
    if then and cluster_uid:
        if then == cluster_uid:
            return
        seen = f"its namespace kube-system had the uid {then}, and now it has the uid {cluster_uid}"
    elif all(servers) and servers[0] != servers[1]:
        seen = f"it used {servers[0]}, and this teardown uses {servers[1]}"
    else:
        return
    raise OtherClusterError(
        f"Run {start.run} in {runs_dir} used another cluster than this teardown: {seen}. Nothing was removed",
        "Set rdma_kubeconfig to the cluster of the run. If this cluster is the right one, set rdma_report_dir to the"
        " report folder of a run on it, or to a new folder. Then run the teardown again",
    )
