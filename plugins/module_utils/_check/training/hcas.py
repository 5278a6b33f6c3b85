# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the HCAs and the rails that a host of a job uses, according to the log of NCCL. Check ids: ``training.hcas``,
``training.rails``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok


@dataclasses.dataclass(frozen=True)
class PodDevices:
    """The devices of one fabric that a pod got.

    :ivar devices: rail of each RDMA device; None if the rail is not known
    :ivar nameless: interfaces whose RDMA device is not known
    """

    devices: dict[str, typing.Optional[int]]
    nameless: tuple[str, ...]


def check_hcas(
    subject: str, got: PodDevices, used: dict[str, bool], allowed: typing.AbstractSet[str], over_nvlink: bool = False
) -> Finding:
    """Return the finding on the HCAs of a fabric that a host uses. They should be exactly those that its pod got.

    :param got: devices of the fabric that the pod got
    :param used: devices that channels use, as ``_collect_used_devices`` returns them
    :param allowed: devices that the pod got of all fabrics that the job may use
    :param over_nvlink: whether channels of the host use NVLink between nodes
    """
    measured, expected = f"uses {_list_names(used)}", f"uses {_list_names(got.devices)}"
    nameless = sorted(name for name, known in used.items() if not known)
    if got.nameless:
        why = f"Neither multus nor the node reports the RDMA device of {folded(got.nameless)}."
        return Finding(
            "training.hcas",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Check the finding virtual_functions.rdma_device: each function needs its RDMA device (run rdma link on"
            " the node). Then run stage training again.",
        )
    if not got.devices:
        return Finding(
            "training.hcas",
            subject,
            FAIL,
            measured,
            "HCAs of this fabric",
            "The pod got no HCA of this fabric, so the job cannot use the fabric.",
            "Check the network annotation of the pod (k8s.v1.cni.cncf.io/networks): it must name the network of this"
            " fabric.",
        )
    if nameless:
        why = f"The log does not report the HCA of these network devices: {folded(nameless)}."
        remedy = (
            "Run the job with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET, because NCCL then also names merged"
            " devices. Then run stage training again with the new logs."
        )
        return Finding("training.hcas", subject, UNKNOWN, measured, expected, why, remedy)
    if not used and over_nvlink:
        why = (
            "The channels of this host to other hosts use NVLink between nodes (MNNVL), so the log proves nothing about"
            " its HCAs. A job over several NVLink domains needs them."
        )
        remedy = (
            "Run the job once with NCCL_MNNVL_ENABLE=0, and give this log to stage training. If the job never leaves"
            " its NVLink domain, waive this finding."
        )
        return Finding("training.hcas", subject, UNKNOWN, "uses none, but NVLink", expected, why, remedy)
    if not used:
        why = (
            "No channel of this host uses RDMA over the network: the log contains no such channel, or all channels use"
            " a different transport."
        )
        return Finding(
            "training.hcas",
            subject,
            UNKNOWN,
            "uses none",
            expected,
            why,
            "Check the findings training.transport and training.channels of the ranks on this host, and correct the"
            " cause. Then run stage training again.",
        )
    idle, foreign = sorted(got.devices.keys() - used.keys()), sorted(used.keys() - allowed)
    if foreign:
        why = (
            f"The pod did not get {folded(foreign)} as a function. The device belongs to a different fabric, or is the"
            " physical function, which all pods of the node share."
        )
        remedy = (
            "Name the exact devices in NCCL_IB_HCA, with '=' in front, because mlx5_1 also matches mlx5_10. Use RDMA"
            " mode exclusive. Then run stage training again with new logs."
        )
        return Finding("training.hcas", subject, FAIL, measured, expected, why, remedy)
    if idle:
        why = (
            f"No channel uses {folded(idle)}: NCCL_IB_HCA excludes it, its port is down, or no GPU of the job is near"
            " it."
        )
        return Finding(
            "training.hcas",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Compare NCCL_IB_HCA with the output of ibv_devinfo in the pod, and give the job the GPUs beside each HCA."
            " Then run stage training again with new logs.",
        )
    return ok("training.hcas", subject, measured, expected)


def check_rails(fabric: Fabric, subject: str, got: PodDevices, used: dict[str, bool]) -> Finding:
    count = fabric.select.hcas_per_node
    expected = f"each of {count} rails used"
    rails = {rail for device, rail in got.devices.items() if rail is not None and device in used}
    idle = [rail for rail in range(count) if rail not in rails]
    measured = f"rails {', '.join(map(str, sorted(rails)))}" if rails else "no rail"
    if not idle:
        return ok("training.rails", subject, measured, expected)
    unknown = sorted(device for device, rail in got.devices.items() if rail is None) or list(got.nameless)
    if unknown or not used or not all(used.values()):
        why = f"The rail of {folded(unknown)} is unknown." if unknown else "The HCAs that the channels use are unknown."
        return Finding(
            "training.rails",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Check the findings of stage fabric and the finding training.hcas of this host, and correct the cause."
            " Then run stage training again.",
        )
    why = f"No data passes over rail {', '.join(map(str, idle))}: the pod has no function on it, or no channel uses it."
    remedy = (
        "Give the pod one network attachment for each rail, and name all HCAs in NCCL_IB_HCA. Use as many GPUs as"
        " rails, or set NCCL_CROSS_NIC. Then run stage training again with new logs."
    )
    return Finding("training.rails", subject, FAIL, measured, expected, why, remedy)


def _list_names(names: typing.Iterable[str]) -> str:
    return folded(sorted(names), 16) or "none"
