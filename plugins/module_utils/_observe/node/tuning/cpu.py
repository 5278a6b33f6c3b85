# SPDX-License-Identifier: GPL-3.0-or-later

"""Read clocks, idle states and threads of the CPUs."""

from __future__ import annotations

import re
import struct
import typing

from ...._model.base.text import format_ranges
from ...._parse.node import tuning as parse
from ...._parse.node.sysfs import parse_number
from ..sysfs_reader import SysfsReader
from .rows import Rows

_CPUS = "devices/system/cpu"
_NODES = "devices/system/node"
_NODE = re.compile(r"\Anode([0-9]{1,4})\Z")
#: what /dev/cpu_dma_latency says while nobody holds it (include/linux/pm_qos.h, PM_QOS_CPU_LATENCY_DEFAULT_VALUE)
_NOT_HELD = 2_000_000_000
_MODEL = re.compile(r"^(?:model name|CPU part|cpu)\s*:\s*(.{1,80}?)\s*$", re.MULTILINE)


def read(rows: Rows, sysfs: SysfsReader, proc: SysfsReader, devices: SysfsReader) -> None:
    """Add the tuning rows of the CPUs to ``rows``: model, clocks, idle states and threads.

    :param rows: collector of the tuning rows (observable properties) of the node
    :param sysfs: reader of the sysfs of the node
    :param proc: reader of the procfs of the node
    :param devices: reader of the folder /dev of the node
    """
    rows.file("cpu_model", proc, "cpuinfo", _read_model)
    rows.file("cpus_online", sysfs, f"{_CPUS}/online", lambda text: format_ranges(parse.parse_cpu_list(text)))
    rows.file("smt", sysfs, f"{_CPUS}/smt/active", parse.on_off)
    for name in ("isolated", "nohz_full"):
        rows.file(name, sysfs, f"{_CPUS}/{name}", lambda text: format_ranges(parse.parse_cpu_list(text)) or "none")
    rows.file(
        "turbo", sysfs, f"{_CPUS}/intel_pstate/no_turbo", lambda text: {"on": "off", "off": "on"}[parse.on_off(text)]
    )
    rows.file("turbo", sysfs, f"{_CPUS}/cpufreq/boost", parse.on_off)
    rows.file("idle_arguments", proc, "cmdline", parse.idle_arguments)
    _of_numa_nodes(rows, sysfs)
    held = _read_held_latency(rows, devices)
    online = sysfs.value(f"{_CPUS}/online", parse.parse_cpu_list)
    if online is None:
        rows.unread(
            f"the online CPUs are unknown: {'; '.join(sysfs.errors[-1:]) or 'no file reports them'}",
            "governor",
            "cpu_driver",
            "idle_latency",
        )
        return
    for cpu in sorted(online):
        folder = f"{_CPUS}/cpu{cpu}"
        rows.file("governor", sysfs, f"{folder}/cpufreq/scaling_governor", parse.parse_word, cpu)
        rows.file("cpu_driver", sysfs, f"{folder}/cpufreq/scaling_driver", parse.parse_word, cpu)
        _read_idle_latency(rows, sysfs, folder, cpu, held)


def _of_numa_nodes(rows: Rows, sysfs: SysfsReader) -> None:
    """Add the tuning row with the CPU list of each NUMA node to ``rows``. A kernel without NUMA has no NUMA nodes, so
    the row gets no value.

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs of the node
    """
    rows.absent("numa_cpus")
    for name in sysfs.names(_NODES):
        node = _NODE.match(name)
        if node:
            rows.file(
                "numa_cpus",
                sysfs,
                f"{_NODES}/{name}/cpulist",
                lambda text: format_ranges(parse.parse_cpu_list(text)) or "none",
                f"node {node.group(1)}",
            )


def _read_held_latency(rows: Rows, devices: SysfsReader) -> int:
    """Add the tuning row with the CPU latency limit that a process currently requests to ``rows``, and return this
    limit in microseconds. If no process requests a limit, or if it cannot be read, return the default of the kernel.
    Opening the file for reading does not lower the limit.

    :param rows: collector of the tuning rows of the node
    :param devices: reader of the folder /dev of the node
    """
    before = len(devices.errors)
    raw = devices.raw("cpu_dma_latency", 4)
    if len(devices.errors) > before:
        rows.unread(devices.errors[-1], "held_latency")
    elif not raw or len(raw) < 4:
        rows.absent("held_latency")
    else:
        (held,) = struct.unpack("=i", raw)
        rows.add("held_latency", "none" if held >= _NOT_HELD else held)
        return int(held)
    return _NOT_HELD


def _read_idle_latency(rows: Rows, sysfs: SysfsReader, folder: str, cpu: int, held: int) -> None:
    """Add the tuning row with the latency, in microseconds, of the deepest idle state that a CPU may enter to ``rows``.
    The kernel never chooses a state with a latency above the requested limit (drivers/cpuidle/governor.c).

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs of the node
    :param folder: folder of the CPU, relative to sysfs
    :param cpu: number of the CPU
    :param held: requested latency limit in microseconds
    """
    before, deepest = len(sysfs.errors), None
    for state in sysfs.names(f"{folder}/cpuidle"):
        off = sysfs.value(f"{folder}/cpuidle/{state}/disable", parse_number)
        latency = sysfs.value(f"{folder}/cpuidle/{state}/latency", parse_number)
        if off == 0 and latency is not None and latency <= held:
            deepest = max(latency, deepest or 0)
    if len(sysfs.errors) > before:
        rows.unread(sysfs.errors[-1], "idle_latency")
    elif deepest is None:
        rows.absent("idle_latency")
    else:
        rows.add("idle_latency", deepest, cpu)


def _read_model(text: str) -> typing.Optional[str]:
    match = _MODEL.search(text)
    return match.group(1) if match else None
