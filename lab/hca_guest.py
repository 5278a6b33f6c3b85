# SPDX-License-Identifier: GPL-3.0-or-later

"""One small guest that has emulated HCAs and nothing else of the lab: for a shell, or for a script whose output and end
are told.

It needs no network namespace and none of the lab's processes, and the lab may run beside it.
"""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import subprocess
import tempfile
import time
import typing

from dev.steps import StepError, say

from . import accelerator
from .build import debian, hca, kernel

GUEST = hca.SOURCE / "guest"
#: as on the nodes that the collection was first written for: four HCAs on one fabric, two on another
PARAMETERS = ("hcas=3c,4d,bc,dc,5e,9c", "fabrics=0,0,0,0,1,1", "nodes=0,0,1,1,0,1")
MEMORY_MIB = 512
#: a guest that ends is one that did not pass; a log that holds what a thousand VFs say
_ARGUMENTS = "loglevel=1 oops=panic log_buf_len=4M"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The end of a script that ran in a guest.

    :ivar code: its exit code
    :ivar output: of both streams
    :ivar log: the kernel's
    """

    code: int
    output: str
    log: str


def shell(parameters: typing.Sequence[str] = PARAMETERS) -> None:
    """Boot, with a shell on this terminal, until it ends."""
    with tempfile.TemporaryDirectory(prefix="hca-") as name:
        subprocess.run(_prepare(pathlib.Path(name), parameters, None, "mon:stdio"), check=False)


def run_script(
    script: str,
    limit: float,
    parameters: typing.Sequence[str] = PARAMETERS,
    tell: typing.Callable[[str], object] = str,
) -> Outcome:
    """Boot, run a script of the shell as root, end.

    :param limit: seconds
    :param tell: is given the output piece by piece, as it comes
    :raises StepError: the guest does not end in time, or ends before the script; with the end of its console
    """
    with tempfile.TemporaryDirectory(prefix="hca-") as name:
        folder = pathlib.Path(name)
        console = folder / "console"
        words = _prepare(folder, parameters, script, f"file:{console}")
        session = folder / "session"
        end = time.monotonic() + limit
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        told = 0
        try:
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.5)
                told = _tell(session / "output", told, tell)
        finally:
            process.kill()
            process.wait()
        _tell(session / "output", told, tell)
        output = _text(session / "output")
        if not (session / "code").exists() or not (session / "dmesg").exists():
            late = time.monotonic() >= end
            tail = (output + _text(console))[-4000:]
            raise StepError(
                f"the guest {f'did not end in {limit:.0f} s' if late else 'ended before its script'}:\n{tail}",
                "read the output above",
            )
        return Outcome(int((session / "code").read_text()), output, _text(session / "dmesg"))


def _tell(path: pathlib.Path, start: int, tell: typing.Callable[[str], object]) -> int:
    if not path.exists():
        return start
    with path.open("rb") as handle:
        handle.seek(start)
        piece = handle.read()
    if piece:
        tell(piece.decode(errors="replace"))
    return start + len(piece)


def _text(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def main(
    script: typing.Optional[pathlib.Path], parameters: typing.Sequence[str], limit: float, only_build: bool
) -> int:
    """Run a script, or give a shell; the script's exit code.

    :param parameters: of the module; none: PARAMETERS
    """
    if only_build:
        say(str(hca.module()))
        return 0
    parameters = parameters or PARAMETERS
    if script is None:
        shell(parameters)
        return 0
    outcome = run_script(
        script.read_text(encoding="utf-8"), limit, parameters, lambda piece: print(piece, end="", flush=True)
    )
    if outcome.code:
        say(outcome.log)
    return outcome.code


def _prepare(
    folder: pathlib.Path, parameters: typing.Sequence[str], script: typing.Optional[str], serial: str
) -> list[str]:
    """Write what the guest is given; the command that starts it."""
    session = folder / "session"
    session.mkdir()
    (session / "parameters").write_text(" ".join(parameters) + "\n", encoding="utf-8")
    if script is not None:
        (session / "script").write_text(script, encoding="utf-8")
    shutil.copy2(GUEST / "start", session)
    module = hca.module()
    kernel_folder = kernel.kernel()
    half = MEMORY_MIB // 2
    words: list[typing.Union[str, pathlib.Path]] = [
        *("env", f"QEMU_MODULE_DIR={debian.qemu_modules()}"),
        *debian.qemu_program(),
        *("-name", "hca", "-M", "q35", *accelerator.options(), "-smp", "1", "-m", str(MEMORY_MIB)),
        # two NUMA nodes, so that an HCA can be on the second
        *("-object", f"memory-backend-ram,id=memory0,size={half}M", "-numa", "node,nodeid=0,memdev=memory0,cpus=0"),
        *("-object", f"memory-backend-ram,id=memory1,size={half}M", "-numa", "node,nodeid=1,memdev=memory1"),
        *accelerator.boot_options(kernel_folder / "vmlinux", hca.initrd()),
        *("-append", f"{accelerator.kernel_arguments()} {_ARGUMENTS}"),
        *("-serial", serial, "-device", "intel-iommu,intremap=on"),
        *_share("root", debian.guest_root(sealed=False), True),
        *_share("modules", kernel_folder / "lib/modules", True),
        *_share("hca", module.parent, True),
        *_share("session", session, False),
    ]
    return [str(word) for word in words]


def _share(tag: str, path: pathlib.Path, readonly: bool) -> list[str]:
    words = f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap"
    return ["-virtfs", f"{words},readonly=on" if readonly else words]
