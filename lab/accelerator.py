# SPDX-License-Identifier: GPL-3.0-or-later

"""The accelerator of QEMU for the guests: KVM where a guest boots by it, else emulation (TCG).

A ``/dev/kvm`` that opens proves nothing. Without the processor's own virtualization it is a paravirtual one, on which
an ordinary kernel never gets to its first line, while all else on the host stands still for seconds. With it a small
guest is booted, once for each boot of the host.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import pathlib
import platform
import selectors
import subprocess
import time
import typing

from dev.steps import CACHE, StepError, say

from .build import debian, kernel

DEVICE, PROCESSORS = pathlib.Path("/dev/kvm"), pathlib.Path("/proc/cpuinfo")
#: Intel's and AMD's virtualization, in PROCESSORS
FLAGS = {"vmx", "svm"}
KVM, TCG = "kvm", "tcg"
OPTIONS: typing.Mapping[str, typing.Sequence[str]] = {
    KVM: ("-accel", "kvm", "-cpu", "host"),
    TCG: ("-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max"),
}
#: the guest has no disk: its first process waits for one for 10 s, and says this before it ends
LAST_WORDS = b"lab: no root file system"
#: until the kernel's first line, and until the last words; with KVM it takes 1 s and 15 s
FIRST_SECONDS, LAST_SECONDS = 5.0, 40.0
#: the processor whose time stamp counter a guest by emulation sees as it is
X86 = "x86_64"
#: rdtsc; shl rdx, 32; or rax, rdx; ret
_READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")
#: seconds between two readings of the counter, and attempts for each: the shortest counts, since it was not interrupted
_COUNTER_SECONDS, _ATTEMPTS = 0.1, 20


def options() -> typing.Sequence[str]:
    """QEMU's options for the accelerator: LAB_ACCELERATOR (kvm or tcg), or what this host can do.

    :raises StepError: LAB_ACCELERATOR names something else
    """
    chosen = os.environ.get("LAB_ACCELERATOR") or (KVM if _kvm_boots() else TCG)
    if chosen not in OPTIONS:
        raise StepError(
            f"LAB_ACCELERATOR is '{chosen}'", f"Set it to {KVM} or {TCG}, or unset it: the lab finds out by itself."
        )
    return OPTIONS[chosen]


def _kvm_boots() -> bool:
    """Tell whether a guest boots by KVM. The answer is kept until the host boots anew, or the guests get another
    kernel."""
    if not os.access(DEVICE, os.R_OK | os.W_OK) or not FLAGS & set(PROCESSORS.read_text(encoding="utf-8").split()):
        return False
    known = CACHE / "kvm"
    question = (
        f"{pathlib.Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()} {kernel.kernel().name}"
    )
    with contextlib.suppress(OSError):
        asked, _space, answer = known.read_text(encoding="ascii").rpartition(" ")
        if asked == question:
            return answer == "yes"
    boots = boots_by(probe_command())
    say(f"- guests run by {'KVM' if boots else f'emulation: a guest does not boot by {DEVICE}'}")
    known.write_text(f"{question} {'yes' if boots else 'no'}", encoding="ascii")
    return boots


def kernel_arguments() -> str:
    """Give the arguments for the kernel of each guest: its console, its IOMMU, and its clock.

    With another clock than the time stamp counter, perftest prints zero and inf as results. A kernel measures the
    frequency of the counter at its boot and counts timer interrupts for a moment: on a host that just then has other
    work, it panics when there are too few, or its clock runs many times too fast. So the frequency is given.
    """
    clock = "tsc=reliable clocksource=tsc no_timer_check"
    if options() == OPTIONS[TCG] and platform.machine() == X86:
        clock += f" tsc_early_khz={measure_counter()}"
    return f"console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off intel_iommu=on iommu=pt {clock}"


@functools.cache
def measure_counter() -> int:
    """Measure the frequency of this processor's time stamp counter, in kHz (x86 alone)."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(_READ_COUNTER)
        place = ctypes.c_char.from_buffer(page)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))
        start, first = _read_counter(read)
        time.sleep(_COUNTER_SECONDS)
        end, last = _read_counter(read)
        del place
    return round((last - first) * 1_000_000 / (end - start))


def _read_counter(read: typing.Callable[[], int]) -> tuple[float, int]:
    """Read the clock (nanoseconds) and the counter at the same time."""
    attempts = []
    for _attempt in range(_ATTEMPTS):
        before, count, after = time.monotonic_ns(), read(), time.monotonic_ns()
        attempts.append((after - before, (before + after) / 2, count))
    _width, when, count = min(attempts)
    return when, count


def boot_options(
    kernel_file: pathlib.Path, initrd: pathlib.Path, reboots: bool = True
) -> tuple[typing.Union[str, pathlib.Path], ...]:
    """Options of QEMU for a guest that boots a kernel itself, and has no devices but those that are given.

    :param reboots: a reboot by its system is one, from its disk as it is then; a panic, of which the kernel tells by
        pvpanic once its initrd runs, ends it with exit code 1. Else it ends with its system
    """
    at_its_end = ("-action", "panic=exit-failure", "-device", "pvpanic-pci,addr=1e") if reboots else ("-no-reboot",)
    return ("-nodefaults", "-display", "none", *at_its_end, "-kernel", kernel_file, "-initrd", initrd)


def probe_command() -> typing.Sequence[typing.Union[str, pathlib.Path]]:
    """QEMU with a small guest by KVM that has no disk; its console is standard output."""
    folder = kernel.kernel()
    return (
        *debian.qemu_program(),
        *(*OPTIONS[KVM], "-M", "q35", "-m", "512", "-serial", "stdio"),
        *boot_options(folder / "vmlinux", folder / "initrd", reboots=False),
        *("-append", "console=ttyS0 panic=-1"),
    )


def boots_by(
    command: typing.Sequence[typing.Union[str, pathlib.Path]], first: float = FIRST_SECONDS, last: float = LAST_SECONDS
) -> bool:
    """Boot a guest; it is ended in any case.

    :param first: seconds until it must have said something
    :param last: seconds until it must have said its last words
    """
    start, said = time.monotonic(), b""
    with (
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process,
        selectors.DefaultSelector() as ready,
    ):
        output = typing.cast(typing.BinaryIO, process.stdout)
        ready.register(output, selectors.EVENT_READ)
        while LAST_WORDS not in said:
            left = start + (last if said else first) - time.monotonic()
            if left <= 0 or not ready.select(left):
                break
            read = os.read(output.fileno(), 65536)
            if not read:
                break
            said += read
        process.kill()
    return LAST_WORDS in said
