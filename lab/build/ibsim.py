# SPDX-License-Identifier: GPL-3.0-or-later

"""ibsim and the library through which diagnostics reach it, compiled from Debian's source with the lab's patch; a
matter of seconds.

Debian 12's ibsim knows no NDR, and no release can have ibping servers beside a live subnet manager: ``ibsim.patch``
says why.
"""

from __future__ import annotations

import hashlib
import pathlib
import tempfile
import urllib.error
import urllib.request

from dev.steps import StepError

from ..cache import cached
from ..fabric.programs import Programs
from ..run import run
from . import debian

HERE = pathlib.Path(__file__)
SOURCE = "pool/main/i/ibsim/ibsim_0.12.orig.tar.gz"
SOURCE_SHA256 = "b0d44e3706b60b4a6996ac20d68dbd6dd59d9302664cef7cee47facf044147fc"
# of Debian 12, unpacked into one folder: the root for the compiler
DEVELOPMENT_PACKAGES = ("libibumad-dev", "libibmad-dev", "libibumad3", "libibmad5")
PATCH = HERE.with_name("ibsim.patch")

_FLAGS = ("-O2", "-Wall", "-Wno-format-truncation", "-Wno-format-overflow")


def programs() -> Programs:
    """What the fabric plane runs; ibsim's source is fetched from the mirror and checked by its digest."""
    development = debian.development_files(DEVELOPMENT_PACKAGES)

    def build(target: pathlib.Path) -> None:
        tarball = target / "source.tar.gz"
        tarball.write_bytes(_fetch(f"{debian.mirror()}/{SOURCE}", SOURCE_SHA256))
        _compile(tarball, development, target)
        tarball.unlink()

    folder = cached("ibsim", [development.name, SOURCE_SHA256, PATCH, HERE], build)
    return Programs(ibsim=folder / "ibsim", umad2sim=folder / "libumad2sim.so", root=debian.guest_root(sealed=False))


def _fetch(address: str, digest: str) -> bytes:
    """:raises StepError: not reachable, or other content than expected"""
    remedy = "is the Debian mirror reachable? 'make lab' can be run again at once"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content: bytes = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise StepError(f"{address}: {error}", remedy) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise StepError(f"{address} has another SHA-256 than {digest}", remedy)
    return content


def _compile(source_tarball: pathlib.Path, dev_root: pathlib.Path, out: pathlib.Path) -> None:
    """Write ``ibsim`` (runs on this machine) and ``libumad2sim.so`` (preloaded by tools of this or a newer Debian) to
    ``out``.

    :param source_tarball: SOURCE, its digest checked by the caller
    :param dev_root: folder with DEVELOPMENT_PACKAGES unpacked
    :raises StepError: the patch does not apply, or the compiler fails; with its output
    """
    libraries = dev_root / "usr/lib/x86_64-linux-gnu"
    with tempfile.TemporaryDirectory(prefix="ibsim-") as scratch:
        source = pathlib.Path(scratch)
        run(["tar", "--extract", "--file", source_tarball, "--directory", source, "--strip-components=1"])
        run(["patch", "--strip=1", "--batch", "--directory", source, "--input", PATCH.resolve()])
        flags = [*_FLAGS, f"-I{source / 'include'}", f"-I{dev_root / 'usr/include'}"]
        # static: this machine has no libibmad of its own
        archives = [libraries / "libibmad.a", libraries / "libibumad.a"]
        run(
            [
                "gcc",
                *flags,
                f"-I{source / 'ibsim'}",
                "-o",
                out / "ibsim",
                *sorted((source / "ibsim").glob("*.c")),
                *archives,
                "-lpthread",
            ]
        )
        client = [source / "umad2sim/umad2sim.c", source / "umad2sim/sim_client.c"]
        libs = [f"-L{libraries}", "-libmad", "-libumad", "-ldl", "-lpthread"]
        run(
            [
                "gcc",
                *flags,
                "-fPIC",
                "-shared",
                f"-I{source / 'umad2sim'}",
                "-o",
                out / "libumad2sim.so",
                *client,
                *libs,
            ]
        )
