# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What is asked right before a module writes on a node, in the process that runs that module: no API server would refuse the write.

Does the run still hold the Lease, and is the machine that answers the node. A node says itself at which address it is, and a key of SSH proves the machine
that is there. Each boot has a random ID, which the kubelet tells of its node, and which the machine shows.
"""

from __future__ import annotations

import typing

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import cluster_spec, connect
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, assure
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.kubernetes import SUBDOMAIN
from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.guard import LONGEST, START
from ansible_collections.linerate.rdma.plugins.module_utils._model.identity import uuid_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import ApiError, Cluster
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import Caller

#: [src Linux drivers/char/random.c]; the kubelet tells it as status.nodeInfo.bootID
BOOT_ID = ("cat", "/proc/sys/kernel/random/boot_id")
#: runs a command, and has its ``rc`` and ``stdout``
Say = typing.Callable[[str], typing.Mapping[str, typing.Any]]

#: options of who confirms: the run, and what leads to its cluster
CONFIRM_SPEC: typing.Dict[str, typing.Any] = cluster_spec(**LEASE_SPEC, facts_dir={"type": "path"}, run={"type": "str"})


def confirm(name: str, given: typing.Mapping[str, typing.Any], check_mode: bool, node: str, say: Say) -> None:
    """See that the machine is the node, that the run holds the Lease, and that nobody else can take it while the write may last. Check mode writes nothing.

    :param name: of the action, without that of the collection
    :param given: options; those of CONFIRM_SPEC count
    :param node: its name in the inventory. Where the cluster has no Node of it, an admin has given the address, and there is nothing to compare with
    :param say: runs a command on the machine
    :raises RdmaError: it does not, it is another machine, or nobody knows
    """
    if check_mode:
        return
    checked = ArgumentSpecValidator(CONFIRM_SPEC).validate({option: given[option] for option in CONFIRM_SPEC if given.get(option) is not None})
    if checked.error_messages:
        raise RdmaError("; ".join(checked.error_messages), "Correct the option")
    caller = typing.cast(typing.Any, Caller(name, checked.validated_parameters, False))
    cluster = connect(caller)
    _compare(node, _told(cluster, node), lambda: uuid_of(say(" ".join(BOOT_ID)).get("stdout")))
    assure(caller, cluster, LONGEST + START)


def _told(cluster: Cluster, node: str) -> str:
    """ID of the boot of a Node, by its kubelet; empty where the cluster has none.

    :raises RdmaError: the API server refuses, or can't be reached
    """
    if not SUBDOMAIN.fits(node):
        return ""
    try:
        found = cluster.list("Node", fields=f"metadata.name={node}").items
    except ApiError as error:
        if error.absent:
            return ""
        raise
    return next((uuid_of(item.get("status", {}).get("nodeInfo", {}).get("bootID")) for item in found if item["metadata"]["name"] == node), "")


def _compare(node: str, told: str, show: typing.Callable[[], str]) -> None:
    """:raises RdmaError: the machine shows another ID"""
    shown = show() if told else ""
    if shown != told:
        seen = f"the machine at the address of {node} shows {f'the boot ID {shown}' if shown else 'no boot ID'}, and its kubelet told {told}"
        remedy = f"Run {' '.join(BOOT_ID)} there, and kubectl get node {node} -o yaml. If it is the node, see why its kubelet does not report"
        raise RdmaError(f"{seen}: nothing is written there. It is another machine, or the kubelet has not reported since its boot", remedy)
