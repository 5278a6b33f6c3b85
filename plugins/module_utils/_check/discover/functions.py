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
            why, remedy = "Whether a driver is bound could not be read.", f"See the finding discover.read of {name}."
            return Finding("discover.driver", subject, UNKNOWN, "not known", expected, why, remedy)
        why = f"No driver is bound to the function {hca.pci.address} [{hca.pci.vendor}:{hca.pci.device}]."
        return Finding("discover.driver", subject, FAIL, "no driver", expected, why, vendors.load_driver([hca]))
    if driver == "vfio-pci":
        why = (
            "The function is given away as a whole, to a virtual machine or to a program of its own, so the node can't"
            " use it."
        )
        remedy = f"Take it back: driverctl unset-override {hca.pci.address if hca.pci else ''}, or end what holds it."
        return Finding("discover.driver", subject, FAIL, driver, expected, why, remedy)
    carrier = node.carrier(hca)
    held = hca.held.rdma_device if hca.held else None
    if rdma and not hca.rdma_device and held:
        return ok("discover.driver", subject, f"{driver}, {held} in a pod", expected)
    if rdma and not hca.rdma_device and carrier is None:
        why = f"The driver {driver} has made no RDMA device of it."
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
    subject, expected = f"{name} {hca.name}", "SR-IOV: sriov_totalvfs of 1 or more"
    if hca.sriov is None:
        return Finding("discover.sriov", subject, FAIL, "absent", expected, *why_no_sriov.why(hca))
    if hca.sriov.total is None:
        why, remedy = "sriov_totalvfs is there and could not be read.", f"See the finding discover.read of {name}."
        return Finding("discover.sriov", subject, UNKNOWN, "not read", expected, why, remedy)
    if hca.sriov.total == 0:
        why, remedy = "Firmware: the function has SR-IOV and makes no VF.", vendors.more_functions(hca)
        return Finding("discover.sriov", subject, FAIL, "0 VFs at most", expected, why, remedy)
    return ok("discover.sriov", subject, f"{hca.sriov.total} VFs at most", expected)
