# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who serves exec to a benchmark: Kubernetes' own code, built from the modules that the lab pins, or a server of the tests. Both in a process of their own."""

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
MODULES = ROOT / "lab" / "go" / "kubernetes"
#: seconds of a build, downloads with it
LIMIT = 1800


class NotBuilt(Exception):
    """Why Kubernetes' code is not to be had here, in a few words."""


def build() -> pathlib.Path:
    """Kubernetes' own exec as a program; minutes for the first time.

    :raises NotBuilt: no Go, or none of its modules
    """
    go = shutil.which("go")
    if not go:
        raise NotBuilt("Go is not installed")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false -mod=readonly"}
    try:
        command = [go, "build", "-o", str(BINARY), str(MAIN)]
        done = subprocess.run(command, cwd=MODULES, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"'go build' took longer than {LIMIT} s") from error
    if done.returncode:
        raise NotBuilt(f"'go build' ended with {done.returncode}: {' '.join(done.stderr.split())[-200:]}")
    return BINARY


@contextlib.contextmanager
def served(latency: float, binary: typing.Optional[pathlib.Path] = None) -> typing.Iterator[str]:
    """The URL of a server as long as it is needed.

    :param latency: seconds before the process of an exec starts
    :param binary: that ``build`` made; a server of the tests without one
    """
    ours = [sys.executable, str(ROOT / "tests/unit/exec_server.py"), "--latency", str(latency)]
    command = [str(binary), "-latency", f"{latency}s"] if binary else ours
    # Kubernetes logs each connection that it closes itself
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if binary else None, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
