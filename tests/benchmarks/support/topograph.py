# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parser of ibnetdiscover's output in NVIDIA topograph (pkg/ib), built from its own module. Nothing of it is in
this repository."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import typing

MODULE = "github.com/NVIDIA/topograph"
BUILD = pathlib.Path(__file__).parents[3] / "build" / "topograph"
#: seconds of a build, downloads with it
LIMIT = 900
MAIN = pathlib.Path(__file__).with_suffix(".go")


class NotBuilt(Exception):
    """Why there is no such parser here, in a few words."""


def build(version: str, source: typing.Optional[pathlib.Path]) -> pathlib.Path:
    """The program that times it, from a checkout, or from the Go module proxy.

    :raises NotBuilt: no Go, no such module to be had, or another one than this program fits
    """
    go = shutil.which("go")
    if not go:
        raise NotBuilt("Go is not installed")
    folder = BUILD / (f"source-{source.resolve().name}" if source else version)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(MAIN, folder / "main.go")
    (folder / "go.mod").unlink(missing_ok=True)
    _run(folder, go, "mod", "init", "benchmark")
    if source:
        _run(folder, go, "mod", "edit", f"-require={MODULE}@v0.0.0", f"-replace={MODULE}@v0.0.0={source.resolve()}")
    else:
        _run(folder, go, "get", f"{MODULE}@{version}")
    _run(folder, go, "build", "-mod=mod", "-o", "benchmark", ".")
    return folder / "benchmark"


def _run(folder: pathlib.Path, *command: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"'go {command[1]}' took longer than {LIMIT} s") from error
    if done.returncode:
        raise NotBuilt(f"'go {command[1]}' ended with {done.returncode}: {' '.join(done.stderr.split())[-200:]}")


def measure(binary: pathlib.Path, text: pathlib.Path, rounds: int) -> tuple[float, str]:
    """Processor seconds of the fastest of some rounds, and what else there is to say."""
    done = subprocess.run([binary, text, str(rounds)], stdout=subprocess.PIPE, text=True, check=True)
    seconds, found = json.loads(done.stdout)
    if not found:
        raise SystemExit("topograph's parser found nothing in the text")
    return min(seconds), f"{found} switches and HCAs, no links"
