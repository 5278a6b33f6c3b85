# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of the pods of stage collectives, on demand: that of the pods, with Debian's Open MPI and the stand-in for
nccl-tests (stand_in.c) above it.

The workers run and their disks are made: so the image comes to them by the folder that they see of the host, and their
containerd imports it there.
"""

from __future__ import annotations

import pathlib
import shutil

from dev.steps import StepError, step

from .. import workers
from ..build import debian, images
from ..cache import cached
from ..description import Description
from ..processes import Processes
from ..run import run

HERE = pathlib.Path(__file__)
SOURCE = HERE.with_name("stand_in.c")
IMAGE = "localhost/collectives:1"
#: where nccl-tests are in an image, unless the intent says another folder
FOLDER = "opt/nccl-tests/build"
PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf")
#: headers of Debian 12, whose compiler is on the host; the libraries are those of the image
DEVELOPMENT_PACKAGES = ("libopenmpi-dev", "libibverbs-dev", "librdmacm-dev")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
#: of AMD's GPUs, which Open MPI would load where one is there: half of the packages
UNUSED = ("libLLVM*", "libamd_comgr*", "libamdhip64*", "libz3*", "libhsa-runtime64*")
_IMPORT_SECONDS = 600


def build() -> pathlib.Path:
    """Return the archive of the image; outside of the lab's network namespace."""
    pod_root, root = debian.pod_root(), debian.collectives_root()
    development = debian.development_files(DEVELOPMENT_PACKAGES, "collectives-development-files")

    def fill(target: pathlib.Path) -> None:
        work = target / "work"
        upper = work / "upper"
        copy_differences(root, pod_root, upper)
        programs = upper / FOLDER
        programs.mkdir(parents=True)
        compile_stand_in(root, development, programs / PROGRAMS[0])
        for name in PROGRAMS[1:]:
            (programs / name).symlink_to(PROGRAMS[0])
        images.archive(
            target / "collectives.tar",
            IMAGE,
            {work / "pod.layer": pod_root, work / "upper.layer": upper},
            {"Cmd": ["/bin/bash"]},
        )
        shutil.rmtree(work)

    return (
        cached("collectives", [pod_root.parent.name, root.parent.name, development.name, SOURCE, HERE], fill)
        / "collectives.tar"
    )


def compile_stand_in(root: pathlib.Path, development: pathlib.Path, program: pathlib.Path) -> None:
    """Compile the stand-in.

    :param root: of the image, with the libraries
    :param development: with the headers
    :raises StepError: the compiler fails; with its output
    """
    headers = [f"-I{development / 'usr/include'}", f"-I{development / LIBRARIES / 'openmpi/include'}"]
    libraries = [root / LIBRARIES / name for name in ("libmpi.so.40", "librdmacm.so.1", "libibverbs.so.1")]
    # what these need in turn is of a newer Debian than this one
    run(
        ["gcc", "-O2", "-Wall", *headers, "-o", program, SOURCE, *libraries, "-lpthread", "-Wl,--allow-shlib-undefined"]
    )


def copy_differences(root: pathlib.Path, lower: pathlib.Path, upper: pathlib.Path) -> None:
    """Copy what a root file system has beside or otherwise than another one, with the folders on the way."""
    unused = [word for name in UNUSED for word in ("!", "-name", name)]
    for line in run(
        ["find", root, "(", "-type", "f", "-o", "-type", "l", ")", *unused, "-printf", "%P\\n"]
    ).splitlines():
        path, other, target = root / line, lower / line, upper / line
        if _same(path, other):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


def _same(one: pathlib.Path, other: pathlib.Path) -> bool:
    if one.is_symlink() or other.is_symlink() or not other.is_file():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()


def start(description: Description, folder: pathlib.Path, processes: Processes) -> None:
    """Give the image to the workers.

    :param folder: of the lab
    :raises StepError: a worker does not take it
    """
    archive = build()
    for worker in description.workers:
        with step(f"import {IMAGE} on {worker.name}"):
            there = workers.share(folder, worker) / archive.name
            shutil.copy2(archive, there)
            done = workers.agent(processes, worker).run(
                ["/bin/sh", "-c", f"ctr -n k8s.io images import /opt/lab/{archive.name} > /dev/null"],
                limit=_IMPORT_SECONDS,
            )
            there.unlink()
            if done.code:
                said = (done.output + done.errors).decode(errors="replace").strip()
                raise StepError(
                    f"{worker.name} does not import {IMAGE}: {said[-1000:]}",
                    f"see lab/on {worker.name} df -h, and its containerd",
                )


def stop(description: Description, processes: Processes) -> None:
    """Take the image from the workers."""
    for worker in description.workers:
        with step(f"remove {IMAGE} from {worker.name}"):
            workers.agent(processes, worker).check(f"ctr -n k8s.io images rm {IMAGE}")
