# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the settings of GPUs with ``nvidia-smi``. The program is taken from the node, from the image of an observer, or
from the root of the driver container of the GPU operator.
"""

from __future__ import annotations

import os
import re
import shutil
import typing

from ...._model.base.errors import ParseError
from ...._parse.node import kernel_config, nvidia_smi
from ...process import command
from ..sysfs_reader import SysfsReader
from .rows import Rows

_LIMIT_SECONDS = 60.0
#: R535 and later; before, the same mask was called clocks_throttle_reasons.active
_REASONS, _REASONS_BEFORE = "clocks_event_reasons.active", "clocks_throttle_reasons.active"
#: field of nvidia-smi with a row of its own, by name of the row
_ROWS = {
    "persistence_mode": "gpu_persistence",
    "ecc.mode.current": "gpu_ecc",
    "mig.mode.current": "gpu_mig",
    "clocks.max.sm": "gpu_max_clock",
    "driver_version": "gpu_driver",
}
#: fields of nvidia-smi about the PCIe link of a GPU, and their row
_LINK, _LINK_ROW = ("pstate", "pcie.link.gen.current", "pcie.link.gen.max"), "gpu_link_speed"
#: fields of nvidia-smi about the NVLink fabric. Older drivers lack some of them [nvidia-smi --help-query-gpu]
_STATE, _STATUS, _CLUSTER, _CLIQUE = "fabric.state", "fabric.status", "fabric.clusterUuid", "fabric.cliqueId"
_HEALTH = "fabric.health.summary"
_FABRIC = (_STATE, _STATUS, _CLUSTER, _CLIQUE, _HEALTH)
#: some drivers print the name of the field again before its value: ``state  Completed``
_NAME_BEFORE = re.compile(r"\A(?:state|status) +")
#: the cluster of a GPU whose NVLink ends in its own machine
_NO_CLUSTER = re.compile(r"\A[0-]*\Z")
#: states of the registration [nvmlGpuFabricState_t of nvml.h, as nvidia-smi writes them]
_COMPLETED, _NOT_SUPPORTED = "Completed", "Not Supported"
#: rows that these fields make
_FABRIC_ROWS = ("gpu_fabric", "gpu_fabric_health", "gpu_clique")
#: where the GPU operator's driver container puts its root on the node
_DRIVER_ROOT = "run/nvidia/driver"
#: either gives HCAs the GPUs' memory by the drivers' own interface
_PEERMEM = ("nvidia_peermem", "nv_peer_mem")
_PROGRAMS = (
    "usr/bin/nvidia-smi",
    "usr/local/bin/nvidia-smi",
    "bin/nvidia-smi",
    "run/current-system/sw/bin/nvidia-smi",
    "opt/bin/nvidia-smi",
)


def read(rows: Rows, sysfs: SysfsReader, host: str, addresses: typing.Sequence[str]) -> None:
    """Add the tuning rows of the GPUs that ``nvidia-smi`` reports to ``rows``. If the program is missing or fails,
    these rows are marked as unread with the reason.

    :param rows: collector of the tuning rows (observable properties) of the node
    :param sysfs: reader of the sysfs of the node
    :param host: folder with the files of the node
    :param addresses: PCI addresses of the GPUs. If empty, no program is run
    """
    of_tool = (*_ROWS.values(), "gpu_slowed", _LINK_ROW, *_FABRIC_ROWS)
    if not addresses:
        rows.absent(*of_tool)
        return
    program = _find_program(host)
    if program is None:
        rows.unread(
            "nvidia-smi exists neither on the node nor in the root of a driver container",
            *(row for row in of_tool if row != "gpu_driver"),
        )
        rows.file("gpu_driver", sysfs, "module/nvidia/version", str)
        return
    asked, finished = _query(program)
    if finished.failure:
        rows.unread(finished.failure, *of_tool)
        return
    try:
        found = nvidia_smi.parse_gpus(finished.stdout, asked)
    except ParseError as error:
        rows.unread(str(error), *of_tool)
        return
    rows.absent(*of_tool)
    for address in addresses:
        if address not in found:
            rows.unread(f"nvidia-smi does not report the GPU {address}, which is on PCI", *of_tool)
    for address, gpu in found.items():
        for field, row in _ROWS.items():
            if field in gpu:
                rows.add(row, gpu[field], address)
        for reasons in (_REASONS, _REASONS_BEFORE):
            if reasons in gpu:
                rows.parsed("gpu_slowed", nvidia_smi.explain_slowness, gpu[reasons], address)
        if all(field in gpu for field in _LINK):
            rows.parsed(_LINK_ROW, nvidia_smi.describe_link, " ".join(gpu[field] for field in _LINK), address)
    _add_fabric(rows, asked, found)


def _query(program: typing.Sequence[str]) -> tuple[list[str], command.Finished]:
    """Run nvidia-smi, and repeat it with fewer fields until it knows all of them. Return the fields of the last
    command, and its result.

    nvidia-smi names the first field that it does not know. A driver before R535 has another name for the reasons of a
    slowdown, which is then used. A field of the NVLink fabric or of the PCIe link that the driver does not know is left
    out.

    :param program: command that runs nvidia-smi
    """
    asked = ["pci.bus_id", *_ROWS, _REASONS, *_LINK, *_FABRIC]
    while True:
        finished = command.run([*program, f"--query-gpu={','.join(asked)}", "--format=csv"], _LIMIT_SECONDS)
        unknown = nvidia_smi.find_unknown_field(finished.stdout)
        if unknown == _REASONS and unknown in asked:
            asked[asked.index(unknown)] = _REASONS_BEFORE
        elif unknown in (*_LINK, *_FABRIC) and unknown in asked:
            asked.remove(unknown)
        else:
            return asked, finished


def _add_fabric(rows: Rows, asked: typing.Container[str], found: typing.Mapping[str, nvidia_smi.Gpu]) -> None:
    """Add the tuning rows with the state of each GPU in the NVLink fabric to ``rows``. If no GPU has a state, the rows
    get no value. If only some GPUs have a state, the row of each other GPU is marked as unread, and so is the row of a
    field that the driver does not know.

    :param rows: collector of the tuning rows of the node
    :param asked: fields that the driver knows
    :param found: fields of each GPU, by PCI address
    """
    for field, row in ((_STATE, "gpu_fabric"), (_HEALTH, "gpu_fabric_health")):
        if field not in asked:
            rows.unread(f"this nvidia-smi does not support the field {field}", row)
    members = [address for address, gpu in found.items() if _read_registration(gpu) is not None]
    for address, gpu in found.items():
        registration = _read_registration(gpu)
        if registration is not None:
            rows.add("gpu_fabric", registration, address)
        elif members:
            rows.unread(f"nvidia-smi reports no state of the NVLink fabric for the GPU {address}", "gpu_fabric")
        if _HEALTH in gpu:
            rows.add("gpu_fabric_health", gpu[_HEALTH], address)
        clique = _read_clique(gpu)
        if clique is not None:
            rows.add("gpu_clique", clique, address)


def _read_registration(gpu: nvidia_smi.Gpu) -> typing.Optional[str]:
    """Return the registration of a GPU with the NVLink fabric: its status, such as ``Success``, if the registration is
    completed, otherwise the state of the registration, such as ``In Progress``. Return None for a GPU without such a
    fabric.

    :param gpu: values of the fields that nvidia-smi reports, by field
    """
    state, status = (_NAME_BEFORE.sub("", gpu.get(f"fabric.{name}", "")) for name in ("state", "status"))
    if not state or state == _NOT_SUPPORTED:
        return None
    return state if state != _COMPLETED else status or f"{_COMPLETED} without a status"


def _read_clique(gpu: nvidia_smi.Gpu) -> typing.Optional[str]:
    """Return the clique of a GPU in the form of the label ``nvidia.com/gpu.clique``: ClusterUUID.CliqueId. Return None
    if the NVLink of the GPU ends in its own machine, or if the driver does not report both parts.

    :param gpu: values of the fields that nvidia-smi reports, by field
    """
    cluster, clique = gpu.get("fabric.clusterUuid", ""), gpu.get("fabric.cliqueId", "")
    return None if _NO_CLUSTER.match(cluster) or not clique else f"{cluster}.{clique}"


def read_p2pdma(rows: Rows, sysfs: SysfsReader, proc: SysfsReader, host: SysfsReader, any_gpu: bool) -> None:
    """Add to ``rows`` the tuning row with the mechanism by which HCAs access GPU memory: ``on`` if the kernel was built
    with P2PDMA, ``peermem`` if a kernel module replaces it, otherwise ``off``.

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs of the node
    :param proc: reader of procfs, which has the kernel configuration on some kernels. Otherwise the configuration is
        read from the files of the node
    :param host: reader of the files of the node
    :param any_gpu: whether the node has a GPU; without one the row gets no value
    """
    rows.absent("p2pdma")
    if not any_gpu:
        return
    release = os.uname().release
    for reader, name in (
        (proc, "config.gz"),
        (host, f"boot/config-{release}"),
        (host, f"usr/lib/modules/{release}/config"),
    ):
        before = len(reader.errors)
        raw = reader.raw(name, kernel_config.MOST_BYTES)
        if len(reader.errors) > before:
            rows.unread(reader.errors[-1], "p2pdma")
            return
        if raw is None:
            continue
        try:
            built = kernel_config.has_p2pdma_support(raw)
        except ParseError as error:
            rows.unread(f"{name}: {error}", "p2pdma")
            return
        peermem = any(os.path.isdir(os.path.join(sysfs.folder, "module", module)) for module in _PEERMEM)
        rows.add("p2pdma", "on" if built else "peermem" if peermem else "off")
        return
    rows.unread(
        f"neither /proc/config.gz nor a configuration of kernel {release} in /boot or /usr/lib/modules exists",
        "p2pdma",
    )


def _find_program(host: str) -> typing.Optional[list[str]]:
    """Return the command that runs nvidia-smi, as a list of words. Without a program on the search path, use that of
    the node or of a driver container, through chroot. Return None if no program is found, or if chroot is missing.

    :param host: folder with the files of the node
    """
    own = shutil.which("nvidia-smi", path=command.search_path())
    if own is not None:
        return [own]
    for root in (host, os.path.join(host, _DRIVER_ROOT)):
        for program in _PROGRAMS:
            if root != "/" and os.path.isfile(os.path.join(root, program)):
                chroot = shutil.which("chroot", path=command.search_path())
                return [chroot, root, f"/{program}"] if chroot else None
    return None
