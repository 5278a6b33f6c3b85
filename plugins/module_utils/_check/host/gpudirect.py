# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether NICs can access the memory of GPUs on a node: by DMA-BUF of the kernel, or by nvidia-peermem, judged
from kernel and driver. Check id: ``host.gpudirect``.

The requirements of both are in the documentation of the GPU operator (GPUDirect RDMA, platform support).
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._analysis.fleet.hcas_of_fabric import find_candidates
from ..._model.base.phrases import format_clause
from ..._model.intent.host_intent import HostNeeds
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import carries_rdma
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import GpuDriver, NodePlatform, ObservedPlatform
from ..._model.node.tuning import NodeTuning
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .unread_nodes import choose_remedy

#: of Linux, since which RDMA registers DMA-BUFs; of the driver, since which its open kernel modules export them
_KERNEL, _DRIVER = (5, 12), 515
#: of Linux, since which the RDMA drivers of these network drivers register DMA-BUFs [torvalds/linux,
#: reg_user_mr_dmabuf in drivers/infiniband/hw: mlx5 5.12, irdma 6.3, bnxt_re 6.6, ionic in each release]. An older
#: kernel of a distribution may have it, and the packages of the vendors have it
_OF_DRIVERS = {
    "mlx5_core": _KERNEL,
    **dict.fromkeys(("ice", "i40e", "iavf", "idpf"), (6, 3)),
    "bnxt_en": (6, 6),
    "ionic": _KERNEL,
}
#: later than each release of Linux
_NEVER = (9999, 0)
#: drivers that give a function to a virtual machine or to a program
_PASSED_ON = ("vfio-pci", "uio_pci_generic", "pci-stub")
#: end of a reason that does not show whether a requirement is met
_UNKNOWN = "is unknown"
#: the object that configures the driver, and who does instead [NVIDIA/gpu-operator api/nvidia/v1alpha1
#: nvidiadriver_types.go]
_POLICY = "ClusterPolicy"
_BY_OBJECTS = (
    "If the ClusterPolicy has spec.driver.useNvidiaDriverCRD: true, the operator ignores its other keys below"
    " spec.driver: set the key below spec of each NVIDIADriver instead (kubectl get nvidiadrivers)."
)
_WAYS = {"dma_buf": "DMA-BUF", "peermem": "nvidia-peermem"}


def check(
    name: str,
    needs: HostNeeds,
    observed: ObservedPlatform,
    by_pods: typing.Container[str] = (),
    tuning: typing.Optional[NodeTuning] = None,
    members: typing.Container[str] = (),
) -> tuple[Finding, ...]:
    """Check that the kernel and the GPU driver of a node provide the access to GPU memory that the intent requires:
    DMA-BUF or nvidia-peermem. The result is empty if the intent does not require GPUDirect.

    :param name: name of the node
    :param needs: host settings of the intent
    :param observed: platform of the node (node_info)
    :param by_pods: names of the nodes that are read by observers (pods) instead of ssh
    :param members: PCI addresses of the HCAs of the node that the RDMA fabrics of the intent may use. NICs of no fabric
        do not count, such as one for storage; without any member all NICs count
    :param tuning: tuning rows of the node, of which ``p2pdma`` shows how its kernel was built; None if they were not
        read
    """
    if needs.gpudirect == "none":
        return ()
    expected = "DMA-BUF or nvidia-peermem" if needs.gpudirect == "auto" else _WAYS[needs.gpudirect]
    expected = f"{expected} available"
    platform = observed.value
    if platform is None or observed.error is not None:
        why = (
            f"The GPU driver and the kernel of the node were not read:"
            f" {format_clause(observed.error, 'the module node_info returned none of their data')}."
        )
        return (
            Finding(
                "host.gpudirect",
                name,
                UNKNOWN,
                "GPU driver and kernel not read",
                expected,
                why,
                choose_remedy(observed.error, name, by_pods, "Python 3.9 or later"),
            ),
        )
    of_fabrics = tuple(
        function
        for function in platform.functions
        if function.address in members or function.physical_function in members
    )
    platform = dataclasses.replace(platform, functions=of_fabrics or platform.functions)
    every = bool(of_fabrics)
    driver = platform.gpu
    if driver is None:
        why = (
            "The file /proc/driver/nvidia/version does not exist on the node: it has no NVIDIA GPU, or the"
            " kernel module nvidia is not loaded."
        )
        remedy = (
            f"Run lspci on {name}. If it lists no GPU, power off the node, and reseat or replace the GPU. If it"
            " lists GPUs of NVIDIA, run kubectl -n gpu-operator get pods -o wide --field-selector"
            f" spec.nodeName={name}, and correct the driver pod that is not ready. If it lists GPUs of another"
            " vendor, set rdma_cluster.host.gpudirect: none, since only NVIDIA's driver is read. Then run stages"
            " platform and host again."
        )
        return (Finding("host.gpudirect", name, UNKNOWN, "no NVIDIA driver loaded", expected, why, remedy),)
    wanted = ("dma_buf", "peermem") if needs.gpudirect == "auto" else (needs.gpudirect,)
    missing = {
        way: tuple(_no_dma_buf(platform, driver, tuning, every) if way == "dma_buf" else _no_peermem(driver))
        for way in wanted
    }
    told = (
        f"driver {driver.version or 'of unknown version'}{_describe_module_kind(driver)}, kernel"
        f" {platform.kernel or 'unknown'},"
        f" {_describe_network_driver(platform, driver)}"
    )
    for way in wanted:
        if not missing[way]:
            return (build_pass("host.gpudirect", name, f"{_WAYS[way]}: {told}", expected),)
    why = " ".join(
        f"{_begin_reason(way, lacks)}: {'; '.join(lack.reason for lack in lacks)}." for way, lacks in missing.items()
    )
    steps = [
        f"To use {_WAYS[way]}: {'; and '.join(dict.fromkeys(lack.step for lack in lacks))}.".replace("NODE", name)
        for way, lacks in missing.items()
    ]
    delegated = f" {_BY_OBJECTS}" if any(_POLICY in step for step in steps) else ""
    # each step after the first one is an alternative
    others = [f"{step[:1].lower()}{step[1:]}" for step in steps[1:]]
    remedy = f"{' Or, '.join([*steps[:1], *others])}{delegated} Then run stages platform and host again."
    if any(all(_UNKNOWN in lack.reason for lack in lacks) for lacks in missing.values()):
        return (Finding("host.gpudirect", name, UNKNOWN, f"availability not known; {told}", expected, why, remedy),)
    return (Finding("host.gpudirect", name, FAIL, f"not available; {told}", expected, why, remedy),)


def list_members(intent: Intent, observed: ObservedHcas) -> frozenset[str]:
    """Return the PCI addresses of the HCAs of a node that the RDMA fabrics of the intent may use.

    :param observed: HCAs of the node, or the error
    """
    return frozenset(
        hca.pci.address
        for fabric in intent.fabrics
        if carries_rdma(fabric) and observed.value is not None
        for hca in find_candidates(fabric, observed.value)
        if hca.pci is not None
    )


class _Lack(typing.NamedTuple):
    """A requirement that a node does not meet, or of which it is unknown whether the node meets it.

    :ivar reason: requirement and observed state, as a sentence
    :ivar step: instruction after which the node meets the requirement
    """

    reason: str
    step: str


def _begin_reason(way: str, lacks: typing.Sequence[_Lack]) -> str:
    """Return the begin of the sentence with the reasons why a path to GPU memory is not available, or not known to be.

    :param way: ``dma_buf`` or ``peermem``
    :param lacks: requirements that are not met, or not known to be met
    """
    if all(_UNKNOWN in lack.reason for lack in lacks):
        return f"It is not proven that {_WAYS[way]} can be used"
    return f"{_WAYS[way]} cannot be used"


def _no_dma_buf(
    platform: NodePlatform, driver: GpuDriver, tuning: typing.Optional[NodeTuning], every: bool
) -> typing.Iterator[_Lack]:
    """Yield the reasons why NICs cannot access GPU memory by DMA-BUF on a node; nothing if they can.

    :param platform: platform of the node
    :param driver: NVIDIA driver of the node
    :param tuning: tuning rows of the node; None if they were not read
    :param every: whether each function of the platform is one of an RDMA fabric
    """
    kernel = platform.kernel
    number = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", kernel)
    least = f"{_KERNEL[0]}.{_KERNEL[1]}"
    if number is None:
        yield _Lack(
            f"the version of the kernel {_UNKNOWN}{f' ({kernel})' if kernel else ''}",
            f"check that uname -r prints {least} or newer on NODE",
        )
    elif (int(number[1]), int(number[2])) < _KERNEL:
        yield _Lack(
            f"kernel {kernel} is older than {least}",
            f"install kernel {least} or newer on NODE, drain the node and reboot it",
        )
    else:
        yield from _judge_nics(platform, (int(number[1]), int(number[2])), every)
    if tuning is not None and any(reading.value != "on" for reading in tuning.rows.get("p2pdma", ())):
        # the kernel of Talos was built so, and GPUDirect RDMA by DMA-BUF did not work [siderolabs/talos issue 12021]
        yield _Lack(
            f"whether NICs can access GPU memory with this kernel {_UNKNOWN}: it is built without CONFIG_PCI_P2PDMA,"
            " which DMA-BUF between PCI devices requires",
            "boot a kernel that is built with CONFIG_PCI_P2PDMA=y. If stage collectives or training proves GPUDirect"
            " RDMA on NODE, waive this finding instead",
        )
    if driver.open is None:
        yield _Lack(
            f"whether the driver uses the open kernel modules {_UNKNOWN}",
            "check that cat /proc/driver/nvidia/version on NODE prints 'Open Kernel Module'",
        )
    elif not driver.open:
        yield _Lack(
            "the driver uses the proprietary kernel modules, which do not export GPU memory",
            "set spec.driver.kernelModuleType: open (or auto) in the ClusterPolicy of the GPU operator",
        )
    major = re.match(r"[0-9]{1,6}", driver.version or "")
    if major is None:
        yield _Lack(
            f"the version of the driver {_UNKNOWN}",
            f"check that cat /proc/driver/nvidia/version on NODE prints version {_DRIVER} or newer",
        )
    elif int(major[0]) < _DRIVER:
        yield _Lack(
            f"driver {driver.version} is older than {_DRIVER}",
            f"set spec.driver.version of the ClusterPolicy to {_DRIVER} or newer",
        )


def _judge_nics(platform: NodePlatform, kernel: tuple[int, int], every: bool) -> typing.Iterator[_Lack]:
    """Yield one reason if NICs of a node have a driver that is not known to register DMA-BUFs on its kernel.

    Each NIC of an RDMA fabric must have such a driver. Without NICs of fabrics one is enough, since a node may also
    have NICs for other purposes. A function without a driver, or with one for virtual machines, has no RDMA device and
    does not count.

    :param platform: platform of the node
    :param kernel: major and minor version of the kernel
    :param every: whether each function of the platform is one of an RDMA fabric
    """
    names = _list_network_drivers(platform)
    unproven = [name for name in names if kernel < _OF_DRIVERS.get(name, _NEVER)]
    if not unproven or (not every and len(unproven) < len(names)):
        return
    known = [f"{name} since {_OF_DRIVERS[name][0]}.{_OF_DRIVERS[name][1]}" for name in unproven if name in _OF_DRIVERS]
    known += [f"{name} in no release known here" for name in unproven if name not in _OF_DRIVERS]
    yield _Lack(
        f"whether the RDMA driver of the NICs registers DMA-BUFs {_UNKNOWN}: those of the kernel do so: "
        f"{', '.join(known)}. The kernel is {platform.kernel}",
        "run grep reg_user_mr_dmabuf /proc/kallsyms on NODE. If it lists a function of the RDMA driver (the"
        " vendor's driver package has one), waive this finding. If not, install the vendor's driver package"
        " or boot a newer kernel",
    )


def _list_network_drivers(platform: NodePlatform) -> list[str]:
    """Return the drivers of the network functions of a node, sorted, each once, without those that pass a function on
    to a virtual machine or to a program.
    """
    return sorted({function.driver for function in platform.functions if function.driver} - set(_PASSED_ON))


def _no_peermem(driver: GpuDriver) -> typing.Iterator[_Lack]:
    if not driver.peermem:
        yield _Lack(
            "the module nvidia_peermem is not loaded",
            "set spec.driver.rdma.enabled: true in the ClusterPolicy of the GPU operator",
        )
    elif not any("peermem" in client or client == "nv_mem" for client in driver.peer_clients):
        yield _Lack(
            "the module nvidia_peermem is loaded but not registered with the RDMA core. "
            + (
                "The NIC driver is of DOCA-OFED, so nvidia_peermem was built or loaded before this NIC driver"
                if driver.ofed
                else "The registration needs the NIC driver of DOCA-OFED, and the NIC driver is that of the kernel"
            ),
            "load it again with the present NIC driver: drain the node and delete its driver pod (kubectl -n"
            " gpu-operator get pods --field-selector spec.nodeName=NODE lists it)"
            if driver.ofed
            else "install DOCA-OFED with the network operator (ofedDriver)",
        )


def _describe_module_kind(driver: GpuDriver) -> str:
    return "" if driver.open is None else " (open kernel modules)" if driver.open else " (proprietary kernel modules)"


def _describe_network_driver(platform: NodePlatform, driver: GpuDriver) -> str:
    if driver.ofed:
        return f"mlx5_core {driver.ofed} of OFED"
    names = _list_network_drivers(platform)
    return f"NIC driver {', '.join(names)}" if names and "mlx5_core" not in names else "mlx5_core of the kernel"
