# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether NICs can access the memory of GPUs on a node: by DMA-BUF of the kernel, or by nvidia-peermem, judged
from kernel and driver. Check id: ``host.gpudirect``.

The requirements of both are in the documentation of the GPU operator (GPUDirect RDMA, platform support).
"""

from __future__ import annotations

import re
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._model.base.phrases import clause
from ..._model.intent.host_intent import HostNeeds
from ..._model.node.platform import GpuDriver, ObservedPlatform
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok

#: of Linux, since which RDMA registers DMA-BUFs; of the driver, since which its open kernel modules export them
_KERNEL, _DRIVER = (5, 12), 515
#: end of a reason that does not show whether a requirement is met
_UNKNOWN = "is unknown"
_WAYS = {"dma_buf": "DMA-BUF", "peermem": "nvidia-peermem"}


def check(
    name: str, needs: HostNeeds, observed: ObservedPlatform, by_pods: typing.Container[str] = ()
) -> tuple[Finding, ...]:
    """Return the finding on one node; an empty tuple if the intent does not require GPUDirect.

    :param name: name of the node
    :param needs: host settings of the intent
    :param observed: platform of the node (node_info)
    :param by_pods: names of the nodes that are read by observers (pods) instead of ssh
    """
    if needs.gpudirect == "none":
        return ()
    expected = "DMA-BUF, or nvidia-peermem" if needs.gpudirect == "auto" else _WAYS[needs.gpudirect]
    platform = observed.value
    if platform is None or observed.error is not None:
        why = f"Data collection (module node_info) failed on {name}: {clause(observed.error, 'no data was returned')}."
        return (
            Finding(
                "host.gpudirect",
                name,
                UNKNOWN,
                "no data",
                expected,
                why,
                unreachable_nodes.remedy(name, by_pods, "Python 3.9 or later"),
            ),
        )
    driver = platform.gpu
    if driver is None:
        why = "The kernel module nvidia is not loaded on the node, so the GPUs of the node are unknown."
        remedy = (
            "Check that the node has GPUs, and that the driver of the GPU operator is ready there (kubectl get"
            " clusterpolicy). Then run stages platform and host again."
        )
        return (Finding("host.gpudirect", name, UNKNOWN, "no NVIDIA driver", expected, why, remedy),)
    wanted = ("dma_buf", "peermem") if needs.gpudirect == "auto" else (needs.gpudirect,)
    missing = {
        way: tuple((_no_dma_buf(platform.kernel, driver)) if way == "dma_buf" else _no_peermem(driver))
        for way in wanted
    }
    told = (
        f"driver {driver.version or 'of unknown version'}{_describe_module_kind(driver)}, kernel"
        f" {platform.kernel or 'unknown'},"
        f" {_network_driver(driver)}"
    )
    for way in wanted:
        if not missing[way]:
            return (ok("host.gpudirect", name, f"{_WAYS[way]}: {told}", expected),)
    why = " ".join(f"{_WAYS[way]}: {'; '.join(reasons)}." for way, reasons in missing.items())
    if all(_UNKNOWN in " ".join(reasons) for reasons in missing.values()):
        return (
            Finding(
                "host.gpudirect",
                name,
                UNKNOWN,
                told,
                expected,
                why,
                "On the node, run cat /proc/driver/nvidia/version to see the version and the kind of the"
                " driver, and uname -r"
                " to see the version of the kernel. Then run stages platform and host again.",
            ),
        )
    return (Finding("host.gpudirect", name, FAIL, told, expected, why, _describe_gpudirect_remedy(wanted)),)


def _no_dma_buf(kernel: str, driver: GpuDriver) -> typing.Iterator[str]:
    """Yield the reasons why NICs cannot access GPU memory by DMA-BUF on a node; nothing if they can.

    :param kernel: version of the running kernel
    """
    number = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", kernel)
    if number is None:
        yield f"the version of the kernel {_UNKNOWN}{f' ({kernel})' if kernel else ''}"
    elif (int(number[1]), int(number[2])) < _KERNEL:
        yield f"kernel {kernel} is older than {_KERNEL[0]}.{_KERNEL[1]}"
    if driver.open is None:
        yield f"whether the driver uses the open kernel modules {_UNKNOWN}"
    elif not driver.open:
        yield "the driver uses the proprietary kernel modules, which do not export GPU memory"
    major = re.match(r"[0-9]{1,6}", driver.version or "")
    if major is not None and int(major[0]) < _DRIVER:
        yield f"driver {driver.version} is older than {_DRIVER}"


def _no_peermem(driver: GpuDriver) -> typing.Iterator[str]:
    if not driver.peermem:
        yield "the module nvidia_peermem is not loaded"
    elif not any("peermem" in client or client == "nv_mem" for client in driver.peer_clients):
        yield (
            "the module nvidia_peermem is loaded but not registered with the RDMA core: the registration needs the NIC"
            " driver of DOCA-OFED"
        )


def _describe_gpudirect_remedy(wanted: typing.Sequence[str]) -> str:
    said = {
        "dma_buf": (
            "DMA-BUF: set spec.driver.kernelModuleType: open (or auto) in the ClusterPolicy of the GPU operator, and"
            " use kernel 5.12 or newer."
        ),
        "peermem": (
            "nvidia-peermem: set spec.driver.rdma.enabled: true in the ClusterPolicy, and install DOCA-OFED with"
            " the network operator (ofedDriver)."
        ),
    }
    return f"{' '.join(said[way] for way in wanted)} Then run stages platform and host again."


def _describe_module_kind(driver: GpuDriver) -> str:
    return "" if driver.open is None else " (open kernel modules)" if driver.open else " (proprietary kernel modules)"


def _network_driver(driver: GpuDriver) -> str:
    return f"mlx5_core {driver.ofed} of OFED" if driver.ofed else "mlx5_core of the kernel"
