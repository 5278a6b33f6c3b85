# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs commands and says what they are doing: one line when a step starts, a sign of life every few seconds, its time, and on failure the cause."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
VENV = BUILD / "venv"
COLLECTIONS = BUILD / "collections"
LOGS = BUILD / "logs"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "linerate-rdma"

#: what the tools of Ansible keep stays with the checkout: two checkouts must not find each other's
ANSIBLE_ENV = {
    "ANSIBLE_HOME": str(BUILD / "ansible-home"),
    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
}

_SIGN_OF_LIFE_SECONDS = 8.0
_TAIL_LINES = 40


class StepError(Exception):
    """A step failed.

    :ivar remedy: what to do
    """

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def say(text: str) -> None:
    print(text, flush=True)


def log_of(name: str) -> pathlib.Path:
    """Where the output of a step is kept; the folder is there afterwards."""
    LOGS.mkdir(parents=True, exist_ok=True)
    return LOGS / ("".join(letter if letter.isalnum() else "-" for letter in name) + ".log")


def run(
    name: str,
    command: typing.Sequence[typing.Union[str, pathlib.Path]],
    remedy: str,
    cwd: pathlib.Path = ROOT,
    env: typing.Optional[typing.Mapping[str, str]] = None,
) -> str:
    """Run a command to its end. Its output goes to ``build/logs/<name>.log``; on failure the end of it is shown.

    :param name: what the step does, in a few words
    :param remedy: what to do when it fails
    :returns: stdout and stderr, as they came
    :raises StepError: exit code other than 0
    """
    path = log_of(name)
    start = time.monotonic()
    say(f"- {name}")
    words = [str(word) for word in command]
    environment = {**os.environ, **(env or {})}
    with path.open("wb") as log, subprocess.Popen(words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT) as process:
        while True:
            try:
                code = process.wait(_SIGN_OF_LIFE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                say(f"  ... {time.monotonic() - start:.0f} s: {_last_line(path)}")
    text = path.read_text(encoding="utf-8", errors="replace")
    if code:
        tail = "\n".join(f"  | {line}" for line in text.splitlines()[-_TAIL_LINES:])
        raise StepError(f"'{name}' ended with {code} after {time.monotonic() - start:.1f} s; all of its output: {path.relative_to(ROOT)}\n{tail}", remedy)
    say(f"  {time.monotonic() - start:.1f} s")
    return text


def guarded(main: typing.Callable[[], None]) -> typing.NoReturn:
    """Run ``main`` and end the process: 0, or 1 with what failed and what to do."""
    try:
        main()
    except StepError as error:
        sys.exit(f"FAILED: {error}\nWhat to do: {error.remedy}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command can be given again")
    sys.exit(0)


def _last_line(path: pathlib.Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:120] if lines else "no output yet"
