# SPDX-License-Identifier: GPL-3.0-or-later

"""One way to run a command: an argument list, its output kept, a clear error."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing

from dev.steps import StepError


def run(
    argv: typing.Sequence[typing.Union[str, pathlib.Path]],
    env: typing.Optional[typing.Mapping[str, str]] = None,
    cwd: typing.Optional[pathlib.Path] = None,
    stdin: typing.Union[str, typing.IO[bytes], None] = None,
    limit: float = 3600,
    remedy: str = "read the output above; the command can be run again by hand",
) -> str:
    """Run to the end and return stdout.

    :param env: added to the environment
    :param stdin: text, or an open stream
    :param limit: seconds; beside tests on a slow machine a build takes many times what it takes alone
    :raises StepError: exit code other than 0, or limit reached; with the end of the output
    """
    words = [str(word) for word in argv]
    source: dict[str, typing.Any] = (
        {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin or subprocess.DEVNULL}
    )
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            words,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            **source,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepError(f"'{' '.join(words[:6])}' did not end within {limit:.0f} s", remedy) from error
    except FileNotFoundError as error:
        raise StepError(
            f"'{words[0]}' is not installed", "run 'make lab', which installs what lab/packages.txt names"
        ) from error
    if done.returncode != 0:
        tail = (done.stdout[-2000:] + done.stderr[-3000:]).strip()
        raise StepError(f"'{' '.join(words[:6])}' ended with {done.returncode}:\n{tail}", remedy)
    return done.stdout
