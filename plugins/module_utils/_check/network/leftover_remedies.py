# SPDX-License-Identifier: GPL-3.0-or-later

"""Remedies for objects that an earlier run left in the cluster. A teardown removes all objects of the intent, and the
deletion of some kinds drains or reboots nodes, so the remedy states the effect first.
"""

from __future__ import annotations

from ..._analysis.controllers.labelled_objects import describe_delete, describe_ways_out, name_kind
from ..._model.kubernetes.apply import BY_ADDRESS, COPIED, AppliedObject
from ..._model.kubernetes.host import HOST_KINDS

_AGAIN = "Then run stage network again."
_UNLESS = "If another intent for this cluster contains the object, leave it."
_NO_TEARDOWN = (
    "Do not run linerate.rdma.teardown for this object, because it also removes all objects of the current intent."
)
_NO_CHECKS = "without the checks of a run"


def describe_leftover_remedy(item: AppliedObject) -> str:
    """Return the instruction for an object that has the label of the collection and is not in the intent."""
    delete = describe_delete(item.kind, item.name, item.namespace)
    if item.reason == COPIED:
        return f"{describe_ways_out(item)}.{_warn_of_deletion(item)} {_AGAIN}"
    if item.reason == BY_ADDRESS:
        return (
            "Run stage platform with -e platform_settle=true and rdma_cluster.disruption: reboot, which selects the"
            " HCAs by their serial numbers. If they report no serial number, or the template is not needed, delete"
            f" it: {delete}. {_AGAIN}"
        )
    if item.kind in HOST_KINDS:
        return (
            f"{_UNLESS} Otherwise pause its MachineConfigPools (kubectl get machineconfigpools): kubectl patch"
            ' machineconfigpool POOL --type merge -p \'{"spec":{"paused":true}}\'. Delete the object: '
            f"{delete}. When the nodes may reboot, run the command for the pools again with false in place of true."
            f"{_warn_of_deletion(item)} {_NO_TEARDOWN} {_AGAIN}"
        )
    if _warn_of_deletion(item):
        return (
            f"{_UNLESS} Otherwise wait until no job runs on its nodes, and delete it: {delete}."
            f"{_warn_of_deletion(item)} {_NO_TEARDOWN} {_AGAIN}"
        )
    return f"If no other intent for this cluster contains the object, delete it: {delete}. {_NO_TEARDOWN} {_AGAIN}"


def _warn_of_deletion(item: AppliedObject) -> str:
    """Return the effect that the deletion of an object has on nodes, with a space before it.

    The text is empty if the deletion has no such effect.
    """
    where = f" -n {item.namespace}" if item.namespace else ""
    show = f"kubectl get {name_kind(item.kind)} {item.name}{where} -o jsonpath="
    if item.kind == "SriovNetworkNodePolicy":
        return (
            " The deletion makes the SR-IOV network operator drain the nodes that the policy selects, and remove"
            f" its virtual functions there, {_NO_CHECKS}. Labels of these nodes: {show}'{{.spec.nodeSelector}}'."
        )
    if item.kind == "SriovNetworkPoolConfig":
        return (
            " The deletion changes how many nodes the SR-IOV network operator drains at a time. If the object sets an"
            f" RDMA mode ({show}'{{.spec.rdmaMode}}'), the operator drains and reboots its nodes, {_NO_CHECKS}."
        )
    if item.kind in HOST_KINDS:
        return (
            " The deletion makes the machine config operator drain and reboot all nodes of the pools that are not"
            f" paused, {_NO_CHECKS}."
        )
    if item.kind == "NicClusterPolicy":
        return (
            " The deletion removes the components of all owners in the object from all nodes: shared RDMA devices,"
            f" nv-ipam, and a driver (ofedDriver) from under running pods, {_NO_CHECKS}. Components: {show}'{{.spec}}'."
        )
    return ""
