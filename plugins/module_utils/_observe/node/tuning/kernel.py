# SPDX-License-Identifier: GPL-3.0-or-later

"""Read memory settings, sysctls and services of the node that affect pods, and hardware faults in the kernel log."""

from __future__ import annotations

import os
import re
import typing

from ...._model.base.errors import ParseError
from ...._parse.node import kernel_log
from ...._parse.node import tuning as parse
from ..sysfs_reader import SysfsReader
from .processes import list_processes
from .rows import Rows

_SYSCTLS = {
    "swappiness": "vm/swappiness",
    "dirty_ratio": "vm/dirty_ratio",
    "dirty_background_ratio": "vm/dirty_background_ratio",
    "numa_balancing": "kernel/numa_balancing",
    "zone_reclaim_mode": "vm/zone_reclaim_mode",
    "min_free_kbytes": "vm/min_free_kbytes",
    "gc_thresh1": "net/ipv4/neigh/default/gc_thresh1",
    "gc_thresh2": "net/ipv4/neigh/default/gc_thresh2",
    "gc_thresh3": "net/ipv4/neigh/default/gc_thresh3",
    "rmem_max": "net/core/rmem_max",
    "wmem_max": "net/core/wmem_max",
}
#: a runtime whose limits its containers begin with
_RUNTIMES = ("containerd", "crio")
_BALANCER = "irqbalance"
_HUGE = re.compile(r"\Ahugepages-([0-9]{1,12})kB\Z")
#: tuning row of the faults in the kernel log, by their cause
_ROWS_OF_CAUSES: dict[kernel_log.Cause, str] = {
    "device": "kernel_log",
    "corrected": "kernel_log_corrected",
    "program": "kernel_log_programs",
}
#: bytes of one record of /dev/kmsg, and records that are read at most: the buffer of a node that has much to say
_RECORD, _MOST_RECORDS = 8192, 100_000


def read(rows: Rows, sysfs: SysfsReader, proc: SysfsReader, devices: SysfsReader, host: SysfsReader) -> None:
    """Add the tuning rows of memory, kernel and services to ``rows``.

    :param rows: collector of the tuning rows (observable properties) of the node
    :param sysfs: reader of the sysfs of the node
    :param proc: reader of the node's procfs. The network sysctls in it are those of the network namespace of this
        process
    :param devices: reader of the folder /dev of the node
    :param host: reader of the files of the node
    """
    for row, name in _SYSCTLS.items():
        rows.file(row, proc, f"sys/{name}", parse.at_least_zero)
    rows.file("swap_kib", proc, "swaps", parse.parse_swap_kib)
    rows.file("thp", sysfs, "kernel/mm/transparent_hugepage/enabled", parse.parse_chosen)
    rows.file("thp_defrag", sysfs, "kernel/mm/transparent_hugepage/defrag", parse.parse_chosen)
    _read_hugepages(rows, sysfs)
    rows.file("pci_realloc", proc, "cmdline", parse.pci_realloc)
    rows.add("kernel", os.uname().release)
    rows.add("ib_umad", "loaded" if os.path.isdir(os.path.join(sysfs.folder, "module/ib_umad")) else "absent")
    rows.file("rdma_shared", sysfs, "module/ib_core/parameters/netns_mode", parse.on_off)
    _read_processes(rows, proc)
    rows.file("tuned", host, "etc/tuned/active_profile", _parse_tuned_profile)
    _read_kernel_faults(rows, devices)


def _read_hugepages(rows: Rows, sysfs: SysfsReader) -> None:
    before = len(sysfs.errors)
    rows.absent("hugepages")
    for name in sysfs.names("kernel/mm/hugepages"):
        match = _HUGE.match(name)
        if match:
            rows.file(
                "hugepages",
                sysfs,
                f"kernel/mm/hugepages/{name}/nr_hugepages",
                parse.at_least_zero,
                f"{match.group(1)}kB",
            )
    if "kernel/mm/hugepages" in sysfs.unread and len(sysfs.errors) > before:
        rows.unread(sysfs.errors[before], "hugepages")


def _read_processes(rows: Rows, proc: SysfsReader) -> None:
    """Add the tuning rows of the services that run on the node to ``rows``: the limit of locked memory of the container
    runtimes, and whether irqbalance runs. Processes are found by the names that the kernel stores. A process that ends
    meanwhile is ignored.

    :param rows: collector of the tuning rows of the node
    :param proc: reader of the procfs of the node
    """
    before, balances = len(proc.errors), False
    rows.absent("memlock")
    for pid, name in list_processes(proc, (*_RUNTIMES, _BALANCER)):
        if name in _RUNTIMES:
            rows.file("memlock", proc, f"{pid}/limits", parse.parse_memlock, name)
        balances = balances or name == _BALANCER
    if len(proc.errors) > before and "" in proc.unread:
        rows.unread(proc.errors[before], "memlock", "irqbalance")
    else:
        rows.add("irqbalance", "runs" if balances else "absent")


def _parse_tuned_profile(text: str) -> str:
    """Return the names of the tuned profiles in a file with one line, as they are. The node tuning operator writes only
    the profile of the node. Return ``none`` for an empty file.

    :raises ParseError: the text does not consist of profile names
    """
    if not re.match(r"\A[A-Za-z0-9_.\- ]{0,200}\Z", text):
        raise ParseError("etc/tuned/active_profile", text, "names of profiles")
    return text.strip() or "none"


def _read_kernel_faults(rows: Rows, devices: SysfsReader) -> None:
    path = os.path.join(devices.folder, "kmsg")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        # a node has it; a container may not
        rows.unread(f"{path} does not exist", *_ROWS_OF_CAUSES.values())
        return
    except OSError as error:
        rows.unread(f"{path}: {error.strerror}", *_ROWS_OF_CAUSES.values())
        return
    try:
        found = kernel_log.parse_faults(_list_log_records(handle))
    except OSError as error:
        rows.unread(f"{path}: {error.strerror}", *_ROWS_OF_CAUSES.values())
        return
    finally:
        os.close(handle)
    for cause, row in _ROWS_OF_CAUSES.items():
        faults = [fault for fault in found if fault.cause == cause]
        for fault in faults:
            rows.add(row, fault.kind, fault.address)
        if not faults:
            rows.add(row, "none")


def _list_log_records(handle: int) -> typing.Iterator[str]:
    for _count in range(_MOST_RECORDS):
        try:
            record = os.read(handle, _RECORD)
        except BlockingIOError:
            return
        except BrokenPipeError:
            # overwritten while it was read; the next read goes on behind it
            continue
        if not record:
            return
        yield record.decode("utf-8", "replace")
