# SPDX-License-Identifier: GPL-3.0-or-later

"""ibsim and the library through which diagnostics reach it: Debian's source, with the lab's patch (lab/fabric/ibsim.patch)."""

from __future__ import annotations

import hashlib
import pathlib
import urllib.error
import urllib.request

from ..cache import cached
from ..console import LabError
from ..fabric import build as fabric
from ..fabric.plane import Programs
from . import debian

HERE = pathlib.Path(__file__)


def programs() -> Programs:
    """What the fabric plane runs; ibsim's source is fetched from the mirror and checked by its digest."""
    development = debian.development_files(fabric.DEVELOPMENT_PACKAGES)

    def build(target: pathlib.Path) -> None:
        tarball = target / "source.tar.gz"
        tarball.write_bytes(_fetch(f"{debian.mirror()}/{fabric.SOURCE}", fabric.SOURCE_SHA256))
        fabric.build(tarball, development, target)
        tarball.unlink()

    folder = cached("ibsim", [development.name, fabric.SOURCE_SHA256, fabric.PATCH, pathlib.Path(fabric.__file__), HERE], build)
    return Programs(ibsim=folder / "ibsim", umad2sim=folder / "libumad2sim.so", root=debian.guest_root())


def _fetch(address: str, digest: str) -> bytes:
    """:raises LabError: not reachable, or other content than expected"""
    remedy = "is the Debian mirror reachable? 'make lab' can be run again at once"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content: bytes = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise LabError(f"{address}: {error}", remedy) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise LabError(f"{address} has another SHA-256 than {digest}", remedy)
    return content
