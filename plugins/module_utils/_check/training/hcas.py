# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the HCAs and the rails that a host of a job uses, according to the log of NCCL. Check ids: ``training.hcas``,
``training.rails``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass

#: remedy where NVLink between nodes hid the HCAs from the job
_WITHOUT_MNNVL = "Run the job once with NCCL_MNNVL_ENABLE=0, and run stage training again with this log."


@dataclasses.dataclass(frozen=True)
class FabricDevices:
    """The devices of one fabric that a pod got.

    :ivar devices: rail of each RDMA device; None if the rail is not known
    :ivar nameless: interfaces whose RDMA device is not known
    """

    devices: dict[str, typing.Optional[int]]
    nameless: tuple[str, ...]

    @property
    def rails(self) -> frozenset[int]:
        """Return the rails of the devices, without those that are not known."""
        return frozenset(rail for rail in self.devices.values() if rail is not None)


def check_hcas(
    subject: str, got: FabricDevices, used: dict[str, bool], allowed: typing.AbstractSet[str], over_nvlink: bool = False
) -> Finding:
    """Compare the HCAs of a fabric that a host uses, according to NCCL's log, with those that its pod got.

    :param subject: subject of the finding
    :param got: devices of the fabric that the pod got
    :param used: devices that channels of the host use. The value is False if the log contains only the number of the
        device and not its name
    :param allowed: devices that the pod got of all fabrics that the job may use
    :param over_nvlink: whether channels of the host use NVLink between nodes
    """
    measured = f"channels use {_list_names(used)}"
    expected = f"channels use {_list_names(got.devices) if got.devices else 'the HCAs that the pod got'}"
    nameless = sorted(name for name, known in used.items() if not known)
    if got.nameless:
        why = f"Neither multus nor sysfs of the node shows the RDMA device of the interface {join_first(got.nameless)}."
        measured = f"{measured}; RDMA device of {join_first(got.nameless)} not read"
        return Finding(
            "training.hcas",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Run rdma link on the node of the pod: each VF of the pod needs an RDMA device. Follow the remedies"
            " of the findings virtual_functions.rdma_device of this node, then run stages virtual_functions and"
            " training again.",
        )
    if not got.devices:
        return Finding(
            "training.hcas",
            subject,
            FAIL,
            measured,
            "channels use HCAs of this fabric",
            "The pod got no HCA of this fabric, so the job cannot use the fabric.",
            "Add the network of this fabric to the annotation k8s.v1.cni.cncf.io/networks of the pods, and run the job"
            " again. Then run stage training again with the new log.",
        )
    if nameless:
        why = f"The log does not report the HCA of these network devices: {join_first(nameless)}."
        remedy = (
            "Run the job again with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET: NCCL then names all devices. Then"
            " run stage training again with the new logs."
        )
        return Finding("training.hcas", subject, UNKNOWN, measured, expected, why, remedy)
    if not used and over_nvlink:
        why = (
            "The channels to other hosts use NVLink between nodes (MNNVL), so this job did not test the HCAs. A job"
            " over several NVLink domains needs them."
        )
        remedy = f"{_WITHOUT_MNNVL} If the job never leaves its NVLink domain, waive this finding."
        return Finding("training.hcas", subject, UNKNOWN, "channels use only NVLink", expected, why, remedy)
    if not used:
        why = (
            "The log shows no channel of this host over RDMA. The finding training.transport of its ranks fails if they"
            " use TCP, and training.channels if their channels are missing in the log."
        )
        return Finding(
            "training.hcas",
            subject,
            UNKNOWN,
            "channels use no HCA",
            expected,
            why,
            "Follow the remedies of the findings training.transport and training.channels of the ranks on this"
            " host, and run the job again. Then run stage training again with the new log.",
        )
    idle, foreign = sorted(got.devices.keys() - used.keys()), sorted(used.keys() - allowed)
    if foreign:
        why = (
            f"The pod did not get {join_first(foreign)} from its networks of the fabrics. In RDMA mode shared, a pod"
            " also sees the other RDMA devices of the node, which other fabrics and pods use."
        )
        remedy = (
            "Set rdma_cluster.node_pool.rdma_mode to exclusive, so that a pod sees only its own devices. Or name the"
            " devices of the pod in NCCL_IB_HCA, with '=' in front: without it, mlx5_1 also matches mlx5_10. Run the"
            " job again, then run stage training again with the new log."
        )
        return Finding("training.hcas", subject, FAIL, measured, expected, why, remedy)
    if idle and over_nvlink:
        why = (
            f"No channel uses {join_first(idle)}. With NVLink between nodes (MNNVL), NCCL counts all nodes of an NVLink"
            " domain as one, and each channel leaves the domain from one of them. So this job did not test these HCAs."
        )
        return Finding("training.hcas", subject, UNKNOWN, measured, expected, why, _WITHOUT_MNNVL)
    if idle:
        why = (
            f"No channel uses {join_first(idle)}: NCCL_IB_HCA excludes it, its port is down, or no GPU of the job"
            " is near it."
        )
        return Finding(
            "training.hcas",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Set NCCL_IB_HCA to devices that ibv_devinfo lists in the pod, and give the job the GPUs beside each HCA"
            " (nvidia-smi topo -m). Run the job again, then run stage training again with the new log.",
        )
    return build_pass("training.hcas", subject, measured, expected)


def check_rails(
    fabric: Fabric,
    subject: str,
    got: FabricDevices,
    used: dict[str, bool],
    node: str,
    over_nvlink: bool = False,
    of_node: typing.AbstractSet[int] = frozenset(),
    interfaces: typing.Optional[int] = None,
) -> Finding:
    """Check that the channels of a host use an HCA on each rail of a fabric.

    :param subject: subject of the finding
    :param got: devices of the fabric that the pod got
    :param used: devices that channels of the host use. The value is False if the log contains only the number of the
        device and not its name
    :param node: name of the node of the pod
    :param over_nvlink: whether channels of the host use NVLink between nodes
    :param of_node: rails of the fabric that all pods of the job on this node got; empty if unknown
    :param interfaces: number of rails that the intent gives a pod of the job; None for all rails
    """
    count = fabric.select.hcas_per_node
    expected = f"all {count} rails used: {', '.join(map(str, range(count)))}" if count > 1 else "rail 0 used"
    rails = {rail for device, rail in got.devices.items() if rail is not None and device in used}
    idle = [rail for rail in range(count) if rail not in rails]
    shown = f": {', '.join(map(str, sorted(rails)))}" if rails else ""
    measured = f"{len(rails)} of {count_of(count, 'rail')} used{shown}"
    if not idle:
        return build_pass("training.rails", subject, measured, expected)
    unknown = sorted(device for device, rail in got.devices.items() if rail is None)
    if unknown or got.nameless or not used or not all(used.values()):
        known = (
            f"{len(rails)} of {count_of(count, 'rail')} known to be used{shown}" if rails else "used rails not known"
        )
        if unknown:
            measured = f"{known}; rail of {join_first(unknown)} not determined"
            why = (
                f"The stored HCAs of {node} on this fabric do not contain the physical"
                f" {'function' if len(unknown) == 1 else 'functions'} of {join_first(unknown)}, and only these show the"
                " rail."
            )
            remedy = (
                f"Run stages discover and fabric again, and correct their findings on {node}. Then run stage"
                " training again."
            )
        else:
            measured = known
            why = (
                f"The RDMA device of the interface {join_first(got.nameless)} of the pod is unknown, and so is its"
                f" rail."
                if got.nameless
                else "The log does not show which HCAs the channels use, so their rails are unknown."
            )
            remedy = (
                f"Follow the remedy of the finding training.hcas on {subject}, which gives the reason. Then run stage"
                " training again."
            )
        return Finding("training.rails", subject, UNKNOWN, measured, expected, why, remedy)
    lacking = [rail for rail in idle if rail not in got.devices.values()]
    again = "Run the job again, then run stage training again with the new log."
    if lacking == idle and of_node >= set(range(count)):
        # each of the other pods of the node has a finding of its own
        return build_pass("training.rails", subject, f"{measured}; other pods of the node have the rest", expected)
    if lacking == idle and interfaces is not None and len(rails) >= interfaces:
        asked = f"{count_of(interfaces, 'rail')} used (rdma_cluster.training.interfaces)"
        return build_pass("training.rails", subject, measured, asked)
    if lacking:
        why = f"The pod has no HCA on rail {', '.join(map(str, lacking))}."
        remedy = (
            "Give the pod one network attachment for each rail (annotation k8s.v1.cni.cncf.io/networks). If jobs use"
            " only some of the rails on purpose (rdma_job.interfaces), set rdma_cluster.training.interfaces to their"
            f" number. {again}"
        )
    elif over_nvlink:
        why = (
            f"No channel uses rail {', '.join(map(str, idle))}. With NVLink between nodes (MNNVL), each channel leaves"
            " the NVLink domain from one of its nodes, so this job did not test these rails."
        )
        return Finding("training.rails", subject, UNKNOWN, measured, expected, why, _WITHOUT_MNNVL)
    else:
        why = f"The pod has an HCA on each rail, but no channel uses rail {', '.join(map(str, idle))}."
        remedy = (
            "Name all HCAs of the pod in NCCL_IB_HCA, or leave it unset. Use as many GPUs as rails, or set"
            f" NCCL_CROSS_NIC=1. {again}"
        )
    return Finding("training.rails", subject, FAIL, measured, expected, why, remedy)


def _list_names(names: typing.Iterable[str]) -> str:
    return join_first(sorted(names), 16) or "none"
