# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tools of a measurement can print when they fail, from their own source: ``python -m dev.messages``.

Each list is the union over the releases below. A test holds each line of it against the vocabularies of
``_parse/pods``. For a new release: add its tag, and give the folder with a clone of each project (``perftest`` and
``rdma-core``).
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import typing

from .steps import ROOT, StepError, guarded

_RDMA_CORE = ("rdma-core", ("v17.11", "v28.0", "v44.0", "v56.0", "v64.0"))
#: tool or library: project, its tags, and the files that it is built of
SOURCES: typing.Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "perftest": (
        "perftest",
        ("v4.5-0.17", "v4.5-0.20", "23.07.0-0.27", "24.10.0-0.66", "25.01.0-0.80", "25.10.0-0.128", "26.04.17"),
        tuple(
            f"src/{name}.c"
            for name in (
                "get_clock",
                "host_memory",
                "perftest_communication",
                "perftest_counters",
                "perftest_parameters",
                "perftest_resources",
                "write_bw",
            )
        ),
    ),
    "rping": (*_RDMA_CORE, ("librdmacm/examples/rping.c",)),
    "libibverbs": (
        *_RDMA_CORE,
        tuple(
            f"libibverbs/{name}.c"
            for name in ("cmd", "device", "dynamic_driver", "ibdev_nl", "init", "memory", "sysfs", "verbs")
        ),
    ),
}
FOLDER = ROOT / "tests" / "unit" / "fixtures" / "messages"

_GIT = ("git", "-c", "core.hooksPath=/dev/null")
_STRING = r'"(?:[^"\\\n]|\\.)*"'
#: a text for the reader of a failure: of literals, and of macros between them, whose values are as unknown as those of
#: %s
_CALL = re.compile(rf"\b(?:fprintf\s*\(\s*stderr\s*,|perror\s*\()\s*((?:(?:{_STRING}|[A-Za-z_0-9]+)\s*)+)")
_PART = re.compile(rf"({_STRING})|[A-Za-z_0-9]+")


def read_messages(source: str) -> set[str]:
    """Return the formats of all messages in a file of C, as it writes them."""
    found = set()
    for call in _CALL.finditer(source.replace("\\\n", "")):
        parts = [match[1] for match in _PART.finditer(call[1])]
        if any(parts):
            found.add("".join("%s" if part is None else part[1:-1] for part in parts))
    return found


def main(folder: pathlib.Path) -> None:
    """Write the list of each tool.

    :param folder: with a clone of each project
    :raises StepError: a clone or a tag is not there; its messages would go missing from the list
    """
    for name, (project, tags, files) in SOURCES.items():
        found: set[str] = set()
        for tag in tags:
            if subprocess.run(
                [*_GIT, "-C", str(folder / project), "rev-parse", "--quiet", "--verify", tag],
                capture_output=True,
                check=False,
            ).returncode:
                raise StepError(f"{folder / project} has no {tag}", "Clone the project there, with its tags")
            for file in files:
                shown = subprocess.run(
                    [*_GIT, "-C", str(folder / project), "show", f"{tag}:{file}"], capture_output=True, check=False
                )
                # an older release may have no such file
                found |= read_messages(shown.stdout.decode(errors="replace"))
        path = FOLDER / f"{name}.txt"
        path.write_text(
            f"# {project} {', '.join(tags)}\n" + "".join(f"{line}\n" for line in sorted(found)), encoding="utf-8"
        )
        print(f"{path.relative_to(ROOT)}: {len(found)} messages")


if __name__ == "__main__":
    guarded(lambda: main(pathlib.Path(sys.argv[1])))
