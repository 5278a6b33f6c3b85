# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the driver and the SR-IOV capability of each network function. Check ids: ``discover.driver``,
``discover.sriov``.
"""

from __future__ import annotations

from ..._analysis.fleet import vendors, why_no_sriov
from ..._model.node.hca import Hca, NodeHcas
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok


def check_driver(name: str, hca: Hca, rdma: bool, node: NodeHcas) -> Finding:
    """Check that a kernel driver is bound to the function.

    :param rdma: whether the function must have an RDMA device as well
    """
    subject, expected = f"{name} {hca.name}", "a driver and an RDMA device" if rdma else "a driver"
    driver = hca.pci.driver if hca.pci else None
    if hca.pci is not None and driver is None:
        if "driver" in hca.unread:
            why, remedy = (
                "The driver of the function could not be read, so it is unknown whether a driver is bound.",
                f"See the finding discover.read of {name} for the error.",
            )
            return Finding("discover.driver", subject, UNKNOWN, "unknown", expected, why, remedy)
        why = f"No driver is bound to the function {hca.pci.address} [{hca.pci.vendor}:{hca.pci.device}]."
        return Finding("discover.driver", subject, FAIL, "no driver", expected, why, vendors.load_driver([hca]))
    if driver == "vfio-pci":
        why = (
            "The function is bound to vfio-pci, for a virtual machine or a user-space program, so the node cannot use"
            " it."
        )
        remedy = (
            "Stop the virtual machine or the program that uses the function. Then return the function to its driver"
            f" (on the node: driverctl unset-override {hca.pci.address if hca.pci else ''}), and run stage discover"
            " again."
        )
        return Finding("discover.driver", subject, FAIL, driver, expected, why, remedy)
    carrier = node.carrier(hca)
    held = hca.held.rdma_device if hca.held else None
    if rdma and not hca.rdma_device and held:
        return ok("discover.driver", subject, f"{driver}, {held} in a pod", expected)
    if rdma and not hca.rdma_device and carrier is None:
        why = f"The driver {driver} has not created an RDMA device for the function."
        return Finding(
            "discover.driver", subject, FAIL, f"{driver}, no RDMA device", expected, why, vendors.load_rdma([hca])
        )
    shown = f", in a bond with {carrier.name}" if carrier else ""
    return ok(
        "discover.driver",
        subject,
        f"{driver or 'no PCI function'}{f', {hca.rdma_device}' if hca.rdma_device else shown}",
        expected,
    )


def check_sriov(name: str, hca: Hca) -> Finding:
    """Check that the function is able to create virtual functions. Stage platform checks their number, once the fabric
    of the function is known.
    """
    subject, expected = f"{name} {hca.name}", "SR-IOV with sriov_totalvfs of at least 1"
    if hca.sriov is None:
        return Finding("discover.sriov", subject, FAIL, "absent", expected, *why_no_sriov.why(hca))
    if hca.sriov.total is None:
        why, remedy = (
            "sriov_totalvfs exists but could not be read, so the number of virtual functions is unknown.",
            f"See the finding discover.read of {name} for the error.",
        )
        return Finding("discover.sriov", subject, UNKNOWN, "could not be read", expected, why, remedy)
    if hca.sriov.total == 0:
        why, remedy = (
            "Firmware: the function has SR-IOV, but the firmware allows 0 virtual functions.",
            vendors.more_functions(hca),
        )
        return Finding("discover.sriov", subject, FAIL, "at most 0 VFs", expected, why, remedy)
    return ok("discover.sriov", subject, f"at most {hca.sriov.total} VFs", expected)
