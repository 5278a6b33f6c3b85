# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of the set-up, of the linters and of the lab: one line when a step starts, a sign of life every few seconds,
its time, and on failure the cause."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import threading
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


#: ends a sign of life; of steps in steps, the innermost speaks
_running: list[threading.Event] = []


class StepError(Exception):
    """A step failed for a known reason.

    :ivar remedy: what to do
    """

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def say(text: str) -> None:
    print(text, flush=True)


def install_packages(packages: typing.Sequence[str], lacking: str) -> None:
    """Install packages of Debian.

    :param lacking: what is wrong without them
    :raises StepError: this system has no apt, this user is not root, or apt fails
    """
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    remedy = f"On Debian, as root, with a mirror that can be reached: {' '.join(command)}"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise StepError(lacking, remedy)
    run("apt-get update", ["apt-get", "update"], remedy)
    run(f"apt-get install {' '.join(packages)}", command, remedy, env={"DEBIAN_FRONTEND": "noninteractive"})


@contextlib.contextmanager
def step(what: str, doing: typing.Callable[[], str] = str) -> typing.Iterator[None]:
    """Announce a step, say every few seconds that it still runs, and print its time in seconds.

    :param doing: asked for each sign of life: what it is at, a line
    """
    start = time.monotonic()
    done = threading.Event()

    def signs_of_life() -> None:
        while not done.wait(_SIGN_OF_LIFE_SECONDS):
            if _running[-1] is done:
                say(f"  ... {what}, {time.monotonic() - start:.0f} s  {doing()}".rstrip())

    say(f"- {what}")
    _running.append(done)
    thread = threading.Thread(target=signs_of_life, daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        say(f"  FAILED: {what}, {time.monotonic() - start:.1f} s")
        raise
    finally:
        done.set()
        thread.join()
        _running.remove(done)
    say(f"  {what}: {time.monotonic() - start:.1f} s")


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
    words = [str(word) for word in command]
    with step(name, lambda: _last_line(path)), path.open("wb") as log:
        code = subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        ).returncode
        text = path.read_text(encoding="utf-8", errors="replace")
        if code:
            tail = "\n".join(f"  | {line}" for line in text.splitlines()[-_TAIL_LINES:])
            raise StepError(f"'{name}' ended with {code}; all of its output: {path.relative_to(ROOT)}\n{tail}", remedy)
    return text


def together(calls: typing.Iterable[typing.Callable[[], object]]) -> None:
    """Run calls beside each other, as many at a time as there are processors, and all of them to their end.

    :raises StepError: some failed: what each of them says
    """
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = [error for error in (end.exception() for end in [pool.submit(call) for call in calls]) if error]
    failed = [error for error in errors if isinstance(error, StepError)]
    for error in errors:
        if error not in failed:
            raise error
    if failed:
        raise StepError("\n".join(map(str, failed)), "\n".join(dict.fromkeys(error.remedy for error in failed)))


def guarded(main: typing.Callable[[], typing.Optional[int]]) -> typing.NoReturn:
    """Run ``main`` and end the process: its exit code, or 1 with what failed and what to do."""
    try:
        code = main()
    except StepError as error:
        sys.exit(f"FAILED: {error}\nWhat to do: {error.remedy}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command can be given again")
    sys.exit(code or 0)


def _last_line(path: pathlib.Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:120] if lines else "no output yet"
