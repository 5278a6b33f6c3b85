# SPDX-License-Identifier: GPL-3.0-or-later

"""What the firmware that runs in an HCA offers, and whether it is that of the others. Check id: ``platform.firmware``.

sysfs and PCI configuration space show what runs, which proves SRIOV_EN and NUM_OF_VFS. A setting that is stored for the next reset shows nowhere in them.
"""

from __future__ import annotations

import collections
import typing

from ..._model.findings import FAIL, WARN, Finding, ok
from ..._model.hca import Hca
from ..._model.intent import Fabric
from ..._model.platform import PciEvidence
from ..fleet.hcas_of_fabric import Membership

#: PCI vendor and device, and board (PSID)
_Model = typing.Tuple[str, str, str]
Versions = typing.Mapping[_Model, typing.Mapping[str, int]]


def versions(memberships: typing.Iterable[Membership]) -> Versions:
    """How many HCAs of each model run which firmware, each HCA of the fabrics counted once. Whose model or firmware does not show is in none."""
    hcas = {(node, member.hca.name): member.hca for membership in memberships for node, members in membership.members.items() for member in members}
    found: typing.Dict[_Model, typing.Counter[str]] = {}
    for hca in hcas.values():
        model = _model(hca)
        if model is not None and hca.firmware:
            found.setdefault(model, collections.Counter())[hca.firmware] += 1
    return found


def check(subject: str, fabric: Fabric, hca: Hca, function: PciEvidence, running: Versions) -> typing.Iterator[Finding]:
    """One finding at most: what sriov_totalvfs alone says is told by platform.sriov."""
    model, wanted, total = _model(hca), fabric.virtual_functions, function.sriov_total or 0
    expected = f"running: {wanted} VFs or more, the version of its model; what is stored for the next reset does not show"
    offered = function.capability
    if offered and total >= wanted and (offered.total < wanted or offered.initial != offered.total):
        why = (
            f"Firmware: the kernel saw {total} VFs when it booted, and now the function offers {offered.total} (InitialVFs {offered.initial}), so none is made."
        )
        remedy = "Set SRIOV_EN=1 and NUM_OF_VFS in its firmware (mstconfig -d ... set), then power-cycle the node."
        yield Finding("platform.firmware", subject, FAIL, f"TotalVFs {offered.total}, InitialVFs {offered.initial}", expected, why, remedy)
        return
    unread = sorted({"fw_ver", "board_id"} & set(hca.unread))
    if unread:
        why = "So whether it runs the same firmware as the others of its model is not known."
        remedy = f"Read /sys/class/infiniband/{hca.rdma_device}/{unread[0]} on the node by hand."
        yield Finding("platform.firmware", subject, WARN, f"{', '.join(unread)} unread", expected, why, remedy)
        return
    counts = running.get(model, {}) if model is not None and hca.firmware else {}
    usual = max(counts, key=lambda version: (counts[version], _parts(version))) if counts else hca.firmware
    if hca.firmware != usual:
        why = f"{counts[usual or '']} of {sum(counts.values())} HCAs of its model ({hca.board or 'no PSID'}) run {usual}. One with another behaves otherwise."
        address = hca.pci.address if hca.pci else hca.name
        remedy = f"Bring it to {usual} (mstflint -d {address} -i ... burn, then mstfwreset or a power cycle), or the others to {hca.firmware}."
        yield Finding("platform.firmware", subject, WARN, f"firmware {hca.firmware}", f"firmware {usual}", why, remedy)
    elif total >= wanted:
        alike = f", as {counts[usual or '']} of {sum(counts.values())} of its model" if counts else ""
        version = f"firmware {hca.firmware} ({hca.board or 'no PSID'}){alike}" if hca.firmware else "no version shown"
        yield ok("platform.firmware", subject, f"{total} VFs offered, {version}", expected)


def _model(hca: Hca) -> typing.Optional[_Model]:
    return (hca.pci.vendor, hca.pci.device, hca.board or "") if hca.pci else None


def _parts(version: str) -> typing.Tuple[typing.Tuple[int, str], ...]:
    """Sort key: of as many HCAs the newer firmware is the usual one."""
    return tuple((int(part), "") if part.isascii() and part.isdigit() and len(part) < 10 else (-1, part) for part in version.split("."))
