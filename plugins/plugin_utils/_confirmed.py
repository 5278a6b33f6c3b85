# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The checks that run immediately before a module writes on a node, in the process that runs the module. No API server
could refuse such a write.

The checks verify that the run still holds the Lease, and that the machine that answers is the node. The address of a
node is not sufficient, since the node itself reports it, and an SSH key identifies only the machine at that address.
Each boot has a random ID, which both the kubelet and the machine report. DMI and the kubelet report the UUID of the
machine.

A kubelet may be compromised. Nothing is written if it reports no boot ID or that of another node, or if its Node no
longer exists.
"""

from __future__ import annotations

import json
import time
import typing

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, verify_lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.kubernetes import SUBDOMAIN
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.inventory import LISTED
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.shown_boot import (
    Boot,
    find_wrong_machine,
    parse_shown_boot,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import LONGEST, START
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import boot_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError, name_of
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import read_json, write_text
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import Caller
from ansible_collections.linerate.rdma.plugins.plugin_utils._own_files import path_of

#: [src Linux drivers/char/random.c, drivers/firmware/dmi-id.c]; only root can read the second one, and not each machine
#: has it
SHOW = "cat /proc/sys/kernel/random/boot_id /sys/class/dmi/id/product_uuid 2>/dev/null"
#: seconds for which the boot IDs of the other nodes count as read: all nodes of a large cluster are 30 MB, which not
#: each write on each node can cost
OTHERS_AGE = 60.0
#: runs a command, and has its ``rc`` and ``stdout``
Say = typing.Callable[[str], typing.Mapping[str, typing.Any]]

#: options of who confirms: the run, and what leads to its cluster
CONFIRM_SPEC: dict[str, typing.Any] = make_cluster_spec(**LEASE_SPEC, facts_dir={"type": "path"}, run={"type": "str"})


def confirm_machine_and_lease(
    name: str,
    given: typing.Mapping[str, typing.Any],
    check_mode: bool,
    variables: typing.Optional[typing.Mapping[str, typing.Any]],
    say: Say,
) -> None:
    """Verify that the machine is the node, that the run holds the Lease, and that no other run can take the Lease
    during the longest write. In check mode nothing is verified, since nothing is written.

    :param name: name of the action, without that of the collection
    :param given: options, of which only those in CONFIRM_SPEC are used
    :param variables: variables of the host; None counts as empty. If the cluster has no Node of the name of the host,
        and the inventory did not take the host from the cluster, the machine is not compared
    :param say: function that runs a command on the machine and returns its ``rc`` and ``stdout``
    :raises RdmaError: the run does not hold the Lease, the machine is not the node, or either cannot be determined
    """
    if check_mode:
        return
    caller = _make_caller(name, given)
    cluster = connect(caller)
    host = variables or {}
    _require_same_machine(
        cluster,
        str(host["inventory_hostname"]),
        bool(host.get(LISTED)),
        str(caller.params.get("run") or ""),
        say,
    )
    verify_lease(caller, cluster, LONGEST + START)


def connect_confirmed(name: str, given: typing.Mapping[str, typing.Any]) -> Cluster:
    """Return a client of the API server of the run, after the options for the connection were validated.

    :param name: name of the action, without that of the collection
    :param given: options, of which only those in CONFIRM_SPEC are used
    :raises RdmaError: an option is invalid, or the API server does not answer
    """
    return connect(_make_caller(name, given))


def _make_caller(name: str, given: typing.Mapping[str, typing.Any]) -> typing.Any:
    checked = ArgumentSpecValidator(CONFIRM_SPEC).validate(
        {option: given[option] for option in CONFIRM_SPEC if given.get(option) is not None}
    )
    if checked.error_messages:
        raise RdmaError("; ".join(checked.error_messages), "Correct the option")
    return Caller(name, checked.validated_parameters, False)


def _require_same_machine(cluster: Cluster, node: str, listed: bool, run: str, say: Say) -> None:
    """Verify that the host on which the task runs is the node of the cluster. A host that is not a Node of the cluster
    is accepted if the inventory did not take it from the cluster.

    :param listed: whether the inventory took the host from the cluster
    :param run: id of the run, whose cache of boot IDs is used
    :param say: function that runs a command on the host and returns its ``rc`` and ``stdout``
    :raises RdmaError: the host is another machine, or this cannot be determined
    """
    told = _find_reported_boot(cluster, node)
    if told is None:
        if listed:
            seen = (
                f"the cluster has no Node {node}, although the inventory took the host from the cluster: nothing is"
                " written on the host"
            )
            raise RdmaError(
                seen,
                (
                    f"Run kubectl get node {node}. Find the client that deleted the Node, restart the kubelet of the"
                    " node, then rerun"
                ),
            )
        return
    shown = parse_shown_boot(say(SHOW).get("stdout"))
    others = _read_cluster_boots(cluster, run, node, told.boot) if told.boot else {}
    twins = sorted(name for name, boot in others.items() if boot == told.boot and name != node)
    wrong = find_wrong_machine(node, told, shown, twins)
    if wrong is not None:
        raise RdmaError(*wrong)


def _find_reported_boot(cluster: Cluster, node: str) -> typing.Optional[Boot]:
    """Return the boot ID and machine UUID that the kubelet of a Node reports. Return None if the cluster has no Node of
    this name.

    :raises RdmaError: the API server refuses or cannot be reached, or the object is not a valid Node
    """
    if not SUBDOMAIN.fits(node):
        return None
    try:
        found = cluster.list("Node", fields=f"metadata.name={node}").items
    except ApiError as error:
        if error.absent:
            return None
        raise
    return next((boot_of(item) for item in found if name_of(item) == node), None)


def _read_cluster_boots(cluster: Cluster, run: str, node: str, boot: str) -> dict[str, str]:
    """Return the boot ID of each node that reports one, by node. The IDs are at most OTHERS_AGE seconds old. They are
    cached in the temporary folder of this ansible-playbook, which is removed when ansible-playbook ends.

    The cache is used only if it contains the boot ID ``boot`` for ``node``. If the kubelet has reported another ID
    since, the node has booted, and the IDs of other nodes may be outdated as well.

    :param run: ID of the run, whose cache is used
    :param node: name of the node
    :param boot: boot ID that the kubelet of the node reports now
    :raises RdmaError: the API server refuses, or cannot be reached
    """
    path = path_of("boots", run)
    kept = read_json(path)
    if isinstance(kept, dict) and 0 <= time.time() - kept["read"] < OTHERS_AGE and kept["boots"].get(node) == boot:
        return {**kept["boots"]}
    begun, boots = time.time(), {}
    for item in cluster.pages("Node"):
        try:
            boots[name_of(item)] = boot_of(item).boot
        except ResourceError:
            # one node can't forbid the writes on all others; its own is refused
            continue
    write_text(path, json.dumps({"read": begun, "boots": {name: boot for name, boot in boots.items() if boot}}))
    return boots
