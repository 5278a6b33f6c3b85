# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who serves exec to a benchmark: Kubernetes' own code, built from the modules that the lab pins, or a server of the
tests. Both in a process of their own. And kubectl of the same release."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).parents[3]
MAIN = pathlib.Path(__file__).with_suffix(".go")
BINARY = ROOT / "build" / "exec-rig"
KUBECTL = ROOT / "build" / "kubectl"
MODULES = ROOT / "lab" / "go" / "cluster"
#: seconds of a build, downloads with it
LIMIT = 1800


class NotBuilt(Exception):
    """Why Kubernetes' code is not to be had here, in a few words."""


def build() -> pathlib.Path:
    """Kubernetes' own exec as a program; minutes for the first time.

    :raises NotBuilt: no Go, or none of its modules
    """
    _go("-mod=readonly", "-o", BINARY, MAIN)
    return BINARY


def kubectl() -> pathlib.Path:
    """kubectl as a program, likewise. The lab needs none, so the modules that it alone needs are added to a copy of the
    lab's pins.

    :raises NotBuilt: no Go, or none of its modules
    """
    KUBECTL.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copy(MODULES / name, KUBECTL)
    _go("-mod=mod", f"-modfile={KUBECTL / 'go.mod'}", "-o", KUBECTL / "kubectl", "k8s.io/kubernetes/cmd/kubectl")
    return KUBECTL / "kubectl"


def installed_kubectl() -> pathlib.Path:
    """That of PATH, of whatever release.

    :raises NotBuilt: there is none
    """
    found = shutil.which("kubectl")
    if not found:
        raise NotBuilt("kubectl is not installed")
    return pathlib.Path(found)


def _go(*arguments: typing.Union[str, pathlib.Path]) -> None:
    go = shutil.which("go")
    if not go:
        raise NotBuilt("Go is not installed")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    try:
        done = subprocess.run(
            [go, "build", *arguments],
            cwd=MODULES,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"'go build' took longer than {LIMIT} s") from error
    if done.returncode:
        raise NotBuilt(f"'go build' ended with {done.returncode}: {' '.join(done.stderr.split())[-200:]}")


@contextlib.contextmanager
def served(latency: float, answer: pathlib.Path, binary: typing.Optional[pathlib.Path] = None) -> typing.Iterator[str]:
    """The URL of a server as long as it is needed.

    :param latency: seconds before the process of an exec starts
    :param answer: what a container without a process prints; a server of the tests has none of these
    :param binary: that ``build`` made; a server of the tests without one
    """
    ours = [sys.executable, str(ROOT / "tests/unit/exec_server.py"), "--latency", str(latency)]
    command = [str(binary), "-latency", f"{latency}s", "-played", str(answer)] if binary else ours
    # Kubernetes logs each connection that it closes itself
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if binary else None, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
