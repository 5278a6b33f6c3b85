# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the port of each HCA. Check id: ``discover.port``."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.node.hca import Hca, Port
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass


@dataclasses.dataclass(frozen=True)
class PortTrouble:
    """The problem because of which a port cannot be used, as the texts of a finding.

    :ivar measured: observed state of the port
    :ivar why: cause, as a sentence. ``DEVICE`` in it stands for the RDMA device
    :ivar remedy: instruction to the user that resolves the cause. ``DEVICE`` in it stands for the RDMA device
    :ivar known: whether the state of the port was read
    """

    measured: str
    why: str
    remedy: str
    known: bool = True


def find_trouble(port: Port) -> typing.Optional[PortTrouble]:
    """Return the problem because of which a port cannot be used, or None if the port is active and has a LID."""
    seen = f"{port.state or 'port state not read'}, {port.physical_state or 'physical state not read'}"
    if port.state is None or port.physical_state is None:
        files = [
            f"/sys/class/infiniband/DEVICE/ports/{port.number}/{name}"
            for name, value in (("state", port.state), ("phys_state", port.physical_state))
            if value is None
        ]
        return PortTrouble(
            seen,
            f"Reading {' and '.join(files)} failed, so the state of the port is unknown.",
            f"Run cat {' '.join(files)} as root on the node. If it prints an error, drain the node and reload the"
            " driver of the HCA. Then"
            " run stage discover again.",
            known=False,
        )
    if port.physical_state == "Disabled":
        return PortTrouble(
            seen,
            "An admin or the subnet manager has disabled the port.",
            f"Run ibportstate LID {port.number} enable as root on a node of the fabric, with the LID that ibstat"
            " shows for this port. If the switch port at the other end of the cable is disabled, enable it with the"
            " management tool of the switch. Then run stage discover again.",
        )
    if port.physical_state in ("Polling", "Sleep", "PortConfigurationTraining"):
        return PortTrouble(
            seen,
            "The port finds no port at the other end of its cable: the cable is missing, the cable or a transceiver"
            " is bad, or the switch port is off.",
            "Reseat or replace the cable, and enable the switch port at its other end. Then run stage discover again.",
        )
    if port.physical_state != "LinkUp":
        return PortTrouble(
            seen,
            "The link goes up and down, or the port is in a test state.",
            f"Run perfquery -C DEVICE -P {port.number} as root on the node. If SymbolErrorCounter or"
            " LinkDownedCounter rises between two calls, replace the cable or the transceiver. Otherwise end the"
            " test of the port at its switch. Then run stage discover again.",
        )
    if port.state == "INIT" and port.sm_lid is None:
        return PortTrouble(
            f"{seen}, no subnet manager",
            "The link is up, but no subnet manager has assigned a LID to the port.",
            "Start a subnet manager on this fabric: opensm on a server, UFM, or the subnet manager of the switch. Then"
            " run stage discover again.",
        )
    if port.state != "ACTIVE":
        return PortTrouble(
            seen,
            "The link is up, but the subnet manager has not activated the port.",
            "Look for this port in the log of the subnet manager (opensm: journalctl -u opensm), correct the error"
            " there, then run stage discover again.",
        )
    if port.lid is None or port.sm_lid is None:
        return PortTrouble(
            f"{seen}, LID {port.lid or 0}, SM LID {port.sm_lid or 0}",
            "The port is active, but the subnet manager has assigned no LID to it."
            if port.lid is None
            else "The port is active and has a LID, but the LID of its subnet manager is 0.",
            "Wait a minute: the subnet manager sets both LIDs within seconds after the port becomes active. If"
            " ibstat on the node still shows LID 0, look for this port in the log of the subnet manager (opensm:"
            " journalctl -u opensm), and correct the error there. Then run stage discover again.",
        )
    return None


def check_port(subject: str, port: Port, device: str) -> Finding:
    """Return the finding about a port of InfiniBand.

    :param subject: subject of the finding
    :param device: RDMA device of the port, by which its folder in sysfs is named
    """
    expected = "ACTIVE, LinkUp, with a LID"
    wrong = find_trouble(port)
    if port.state == "ACTIVE" and port.physical_state == "LinkUp" and port.sm_lid is None:
        expected += " and the LID of a subnet manager"
    if wrong is None:
        rate = f"{port.rate_gbps:g} Gb/s ({port.width}X {port.speed})" if port.rate_gbps is not None else "rate unknown"
        return build_pass("discover.port", subject, f"ACTIVE, LinkUp, {rate}, LID {port.lid}", expected)
    why, remedy = (text.replace("DEVICE", device) for text in (wrong.why, wrong.remedy))
    return Finding("discover.port", subject, FAIL if wrong.known else UNKNOWN, wrong.measured, expected, why, remedy)


def check_ports_of_ethernet(subject: str, hca: Hca) -> typing.Iterator[Finding]:
    """Yield a finding on each port of an RDMA device that has several ports on Ethernet, and a warning if more than one
    of them is active. A port is not active if its network interface is down or has no carrier. Devices with one port
    are not checked here, but by their network interface.

    :param subject: subject of the findings, to which the number of the port is added
    """
    check_id, device = "discover.port", hca.rdma_device or hca.name
    active = []
    for port in hca.all_ports:
        its, expected = f"{subject} port {port.number}", "ACTIVE, LinkUp"
        seen = f"{port.state or 'port state not read'}, {port.physical_state or 'physical state not read'}"
        folder = f"/sys/class/infiniband/{device}/ports/{port.number}"
        if (port.state, port.physical_state) == ("ACTIVE", "LinkUp"):
            active.append(port.number)
            rate = f"{port.rate_gbps:g} Gb/s" if port.rate_gbps is not None else "rate unknown"
            yield build_pass(check_id, its, f"{seen}, {rate}", expected)
        elif port.state is None or port.physical_state is None:
            why = f"Reading state or phys_state in {folder} failed, so the state of the port is unknown."
            remedy = (
                f"Run cat {folder}/state {folder}/phys_state as root on the node. If it prints an error, drain the"
                " node and reload the"
                " driver of the NIC. Then run stage discover again."
            )
            yield Finding(check_id, its, UNKNOWN, seen, expected, why, remedy)
        else:
            why = (
                f"{device} has {len(hca.all_ports)} ports, and this one carries no data: its network interface is down,"
                " or has no carrier. The intent does not say whether the fabric needs it."
            )
            remedy = (
                "If the fabric does not use this port, waive this finding. Otherwise run cat"
                f" {folder}/gid_attrs/ndevs/0 on the node for the name of its interface, bring it up (ip link set"
                " dev INTERFACE up), and check its cable. Then run stage discover again."
            )
            yield Finding(check_id, its, UNKNOWN, seen, expected, why, remedy)
    if len(active) > 1:
        yield Finding(
            check_id,
            f"{subject} ports",
            WARN,
            f"{len(active)} active ports: {', '.join(map(str, active))}",
            "one active port",
            "Stage bandwidth measures one port of an RDMA device: port 1, or with pods.connection: rdma_cm the port of"
            " the pod's address. NCCL uses all of them, so the figures do not prove the other ports.",
            "Compare the bandwidth of stage collectives with the rate of all ports, and measure each port with"
            f" ib_write_bw -d {device} -i PORT between two nodes. If the figures are right, waive this finding.",
        )
