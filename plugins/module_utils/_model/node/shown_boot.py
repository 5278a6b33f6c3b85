# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove by the ID of its boot that the machine at the address of a node is that node. The functions are pure."""

from __future__ import annotations

import dataclasses
import typing

from .identity import swap_byte_order, uuid_of


@dataclasses.dataclass(frozen=True)
class Boot:
    """One boot of a machine, as the kubelet or the machine itself reports it.

    :ivar boot: random ID of the boot, as UUID; empty if no valid one is reported
    :ivar machine: UUID of the machine; empty if none is reported
    """

    boot: str = ""
    machine: str = ""


def parse_shown_boot(text: typing.Any) -> Boot:
    r"""Return the boot that a machine reports: a line with the ID of its boot, and one with its DMI UUID, which only
    root can read. Example::

        >>> parse_shown_boot("3f1c7c9e-9a51-4a0a-8f0e-0d6a0f6b1c11\ncat: Permission denied\n")
        Boot(boot='3f1c7c9e-9a51-4a0a-8f0e-0d6a0f6b1c11', machine='')
    """
    boot, machine = ([*text.splitlines()[:2], "", ""] if isinstance(text, str) else ["", ""])[:2]
    return Boot(uuid_of(boot), uuid_of(machine))


def find_wrong_machine(
    node: str, told: Boot, shown: Boot, twins: typing.Sequence[str]
) -> typing.Optional[tuple[str, str]]:
    """Return why the machine at the address of a node is not proven to be that node: the observation, and the remedy.
    Return None if it is the node.

    The boot ID decides. The UUID of the machine is compared in addition if both report one, since even an unprivileged
    process can read the boot ID of its machine.

    :param node: name of the node
    :param told: boot ID and machine UUID that the kubelet of the node reports
    :param shown: boot ID and machine UUID that the machine at its address reports
    :param twins: names of other nodes whose kubelets report the same boot ID
    """
    look = f"Run cat /proc/sys/kernel/random/boot_id on that machine, and kubectl get node {node} -o yaml"
    if not told.boot:
        return (
            (
                f"the kubelet of {node} does not report a boot ID (status.nodeInfo.bootID), so this collection does"
                " not change the machine at the address of the node"
            ),
            (
                f"Run kubectl get node {node} -o yaml. Every kubelet reports a boot ID. Restart the kubelet of"
                f" {node}. If the boot ID is still missing, find the client that changes the status of the node"
            ),
        )
    if shown.boot != told.boot:
        seen = (
            f"the machine at the address of {node} reports"
            f" {f'the boot ID {shown.boot}' if shown.boot else 'no boot ID'}, but its kubelet reported the boot ID"
            f" {told.boot}"
        )
        why = "It is a different machine, or the kubelet has not reported since the node booted"
        return (
            f"{seen}: this collection does not change this machine. {why}",
            f"{look}. If the machine is the node, find out why its kubelet does not report",
        )
    if twins:
        return (
            (
                f"the kubelets of {', '.join([node, *twins[:3]])} report the same boot ID ({told.boot}), so this"
                " collection does not change the machine that reports this boot ID"
            ),
            (
                f"{look}. Find the node that reports the boot ID of a different node. Nodes that are containers on"
                " the same machine cannot be distinguished"
            ),
        )
    if told.machine and shown.machine and shown.machine not in (told.machine, swap_byte_order(told.machine)):
        seen = (
            f"the machine at the address of {node} reports the UUID {shown.machine}, but its kubelet reported the"
            f" UUID {told.machine} (status.nodeInfo.systemUUID)"
        )
        return (
            f"{seen}: this collection does not change this machine",
            f"Run cat /sys/class/dmi/id/product_uuid on that machine, and kubectl get node {node} -o yaml",
        )
    return None
