# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the driver and the SR-IOV capability of each network function. Check ids: ``discover.driver``,
``discover.sriov``.
"""

from __future__ import annotations

from ..._analysis.fleet import vendors, why_no_sriov
from ..._model.node.hca import Hca, NodeHcas
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass


def check_driver(name: str, hca: Hca, rdma: bool, node: NodeHcas) -> Finding:
    """Check that a network driver is bound to a PCI function, and that it has an RDMA device if it needs one.

    :param name: name of the node
    :param hca: PCI function that is checked
    :param rdma: whether the function must have an RDMA device as well
    :param node: HCAs of the node
    """
    subject, expected = f"{name} {hca.name}", "a network driver and an RDMA device" if rdma else "a network driver"
    driver = hca.pci.driver if hca.pci else None
    if hca.pci is not None and driver is None:
        if "driver" in hca.unread:
            path = f"/sys/bus/pci/devices/{hca.pci.address}/driver"
            why, remedy = (
                f"Reading the link {path} failed, so it is unknown which driver the function has.",
                f"Run readlink {path} as root on {name}. If it prints nothing, load the driver of the function."
                f" {vendors.load_driver([hca])} Then run stage discover again.",
            )
            return Finding("discover.driver", subject, UNKNOWN, "driver not read", expected, why, remedy)
        why = (
            f"The driver for {hca.pci.vendor}:{hca.pci.device} is not loaded, or it failed for the function"
            f" {hca.pci.address}."
        )
        remedy = f"{vendors.load_driver([hca])} Then run stage discover again."
        return Finding("discover.driver", subject, FAIL, "no driver", expected, why, remedy)
    if driver == "vfio-pci":
        why = (
            "vfio-pci gives the function to a virtual machine or a user-space program, so the kernel of the node cannot"
            " use it."
        )
        remedy = (
            "Stop the virtual machine or the program that uses the function. Then return the function to its driver"
            f" (on the node: driverctl unset-override {hca.pci.address if hca.pci else ''}), and run stage discover"
            " again."
        )
        return Finding("discover.driver", subject, FAIL, f"driver {driver}", expected, why, remedy)
    carrier = node.carrier(hca)
    held = hca.held.rdma_device if hca.held else None
    if rdma and not hca.rdma_device and held:
        return build_pass("discover.driver", subject, f"{driver}, {held} in a pod", expected)
    if rdma and not hca.rdma_device and carrier is None:
        why = "The RDMA driver of the NIC is not loaded, or RDMA is disabled for the function."
        remedy = f"{vendors.load_rdma([hca])} Then run stage discover again."
        return Finding("discover.driver", subject, FAIL, f"driver {driver}, no RDMA device", expected, why, remedy)
    shown = f", in a bond with {carrier.name}" if carrier else ""
    return build_pass(
        "discover.driver",
        subject,
        f"{driver or 'no PCI function'}{f', {hca.rdma_device}' if hca.rdma_device else shown}",
        expected,
    )


def check_sriov(name: str, hca: Hca) -> Finding:
    """Check that the function is able to create virtual functions. Stage platform checks their number, once the fabric
    of the function is known.

    :param name: name of the node
    :param hca: PCI function that is checked
    """
    subject, expected = f"{name} {hca.name}", "at least 1 VF offered (sriov_totalvfs)"
    if hca.sriov is None:
        why, remedy = why_no_sriov.explain_no_sriov(hca)
        if "again." not in remedy:
            remedy = f"{remedy} Then run stage discover again."
        return Finding("discover.sriov", subject, FAIL, "no VFs offered: no file sriov_totalvfs", expected, why, remedy)
    if hca.sriov.total is None:
        why, remedy = (
            "Reading the file sriov_totalvfs of the function failed, so it is unknown how many VFs the"
            " function offers.",
            f"Run cat /sys/bus/pci/devices/{hca.pci.address if hca.pci else 'ADDRESS'}/sriov_totalvfs as root on"
            f" {name}. If it prints an error, drain the node and reload the driver of the function. Then run stage"
            " discover again.",
        )
        return Finding(
            "discover.sriov", subject, UNKNOWN, "number of offered VFs not read (sriov_totalvfs)", expected, why, remedy
        )
    if hca.sriov.total == 0:
        why, remedy = (
            "The firmware of the function has SR-IOV enabled, but allows no virtual functions.",
            f"{vendors.enable_functions(hca)} Then run stage discover again.",
        )
        return Finding("discover.sriov", subject, FAIL, "0 VFs offered (sriov_totalvfs)", expected, why, remedy)
    return build_pass("discover.sriov", subject, f"at most {hca.sriov.total} VFs", expected)
