# SPDX-License-Identifier: GPL-3.0-or-later

"""The messages of tools that fail, from their own source: ``python -m dev.messages FOLDER [TOOL...]``.

Each list is the union over the releases below. A test holds each line of it against the vocabularies of ``_parse``. For
a new release: add its tag, and give the folder with a clone of each project.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import typing

from .steps import ROOT, StepError, guarded

_STRING = r'"(?:[^"\\\n]|\\.)*"'
#: a text for the reader of a failure: of literals, and of macros between them, whose values are as unknown as those of
#: %s
_TEXT = rf"((?:(?:{_STRING}|[A-Za-z_0-9]+)\s*)+)"
_PART = re.compile(rf"({_STRING})|[A-Za-z_0-9]+")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)

#: tools of rdma-core and perftest
_STDERR = re.compile(rf"\b(?:fprintf\s*\(\s*stderr\s*,|perror\s*\()\s*{_TEXT}")
_NCCL = re.compile(rf"\bWARN\s*\(\s*{_TEXT}")


_UCX = re.compile(rf"\bucs_(?:error|warn|diag|fatal|log\s*\(\s*[^,\"]{{1,60}},)\s*\(?\s*{_TEXT}")
#: of libfabric: behind the provider or the subsystem, or both
_LIBFABRIC = re.compile(rf"\b(?:FI_WARN(?:_ONCE)?|VRB_WARN\w*)\s*\((?:[^\",;()]{{1,80}},\s*){{1,3}}{_TEXT}")
#: of OLM: errors, reasons, and what is written into conditions
_GO = re.compile(
    r"(?:\b(?:fmt\.Errorf|errors\.New|fmt\.Sprintf)\(\s*|SetPhase\w*\([^\"\n]*?, |(?:Condition|Status)?Reason\s*= "
    r"|\bPrettyConstraint\([^\"\n]*?, |setSubs\w*\([^\"\n]*?|\b(?:Message|Reason)(?::|\s*=)\s*)"
    rf"((?:{_STRING}\s*)+)"
)


class Source(typing.NamedTuple):
    """The places of a tool's messages in its source.

    :ivar project: name of its clone
    :ivar tags: releases
    :ivar paths: files and folders that it is built of
    :ivar calls: that print a message, of which the group is its text
    :ivar but: parts of the names of files that are not built here
    """

    project: str
    tags: tuple[str, ...]
    paths: tuple[str, ...]
    calls: typing.Pattern[str] = _STDERR
    but: typing.Pattern[str] = re.compile(r"/test/|/examples?/(?!rping)")


_RDMA_CORE = ("rdma-core", ("v17.11", "v28.0", "v44.0", "v56.0", "v64.0"))
#: tool or library: what it is made of
SOURCES: typing.Mapping[str, Source] = {
    "perftest": Source(
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
    "rping": Source(*_RDMA_CORE, ("librdmacm/examples/rping.c",)),
    "libibverbs": Source(
        *_RDMA_CORE,
        tuple(
            f"libibverbs/{name}.c"
            for name in ("cmd", "device", "dynamic_driver", "ibdev_nl", "init", "memory", "sysfs", "verbs")
        ),
    ),
    "nccl": Source(
        "nccl",
        (
            *("v2.8.4-1", "v2.9.9-1", "v2.10.3-1", "v2.11.4-1", "v2.12.12-1", "v2.13.4-1", "v2.14.3-1", "v2.15.5-1"),
            *("v2.16.5-1", "v2.17.1-1", "v2.18.6-1", "v2.19.4-1", "v2.20.5-1", "v2.21.5-1", "v2.22.3-1", "v2.23.4-1"),
            *("v2.24.3-1", "v2.25.1-1", "v2.26.6-1", "v2.27.7-1", "v2.28.9-1", "v2.29.7-1", "v2.30.7-1"),
            # branch dev, 2.31.0, which has no tag
            "86fa684d3bd5",
        ),
        ("src",),
        _NCCL,
        re.compile(r"/windows"),
    ),
    "ucx": Source(
        "ucx",
        ("v1.8.1", "v1.10.1", "v1.12.1", "v1.14.1", "v1.16.0", "v1.18.1", "v1.20.0", "v1.22.0"),
        ("src/uct/ib", "src/ucp/core/ucp_context.c", "src/ucp/wireup/select.c", "src/ucs/sys/sys.c"),
        _UCX,
        re.compile(r"/efa/|/gdaki/|/gga/|/cm/"),
    ),
    "libfabric": Source(
        "libfabric",
        ("v1.10.1", "v1.12.1", "v1.15.2", "v1.18.2", "v1.20.1", "v1.22.0", "v2.1.0", "v2.3.1", "v2.6.0"),
        ("prov/verbs/src", "prov/rxm/src"),
        _LIBFABRIC,
    ),
    "olm": Source(
        "operator-lifecycle-manager",
        ("v0.18.3", "v0.22.0", "v0.25.0", "v0.28.0", "v0.31.0", "v0.34.0", "v0.37.0", "v0.40.0", "v0.43.0", "v0.46.0"),
        (
            "pkg/controller/registry/resolver",
            "pkg/controller/bundle/bundle_unpacker.go",
            "pkg/controller/operators/catalog/operator.go",
            "pkg/controller/operators/catalog/step.go",
            "pkg/controller/operators/catalog/step_ensurer.go",
            "pkg/controller/operators/catalog/subscription/state.go",
            "pkg/controller/operators/olm/operator.go",
            "pkg/controller/operators/olm/requirements.go",
            *(f"pkg/controller/install/{name}.go" for name in ("apiservice", "deployment", "status_viewer", "webhook")),
            *(
                f"vendor/github.com/operator-framework/api/pkg/operators/v1alpha1/{name}_types.go"
                for name in ("catalogsource", "clusterserviceversion", "installplan", "subscription")
            ),
        ),
        _GO,
        re.compile(r"_test\.go$|/fake"),
    ),
}
FOLDER = ROOT / "tests" / "unit" / "fixtures" / "messages"

_GIT = ("git", "-c", "core.hooksPath=/dev/null")
_ENDINGS = (".c", ".inl", ".cc", ".cpp", ".cu", ".h", ".hpp", ".cuh", ".go")


def read_messages(source: str, calls: typing.Pattern[str] = _STDERR) -> set[str]:
    """Return the formats of all messages in a file of C, as it writes them."""
    found = set()
    for call in calls.finditer(_COMMENT.sub("", source.replace("\\\n", ""))):
        parts = [match[1] for match in _PART.finditer(call[1])]
        if any(parts):
            found.add("".join("%s" if part is None else part[1:-1] for part in parts))
    return found


def main(folder: pathlib.Path, names: typing.Sequence[str]) -> None:
    """Write the list of each tool.

    :param folder: with a clone of each project
    :param names: of tools, whose lists alone are written; none: all
    :raises StepError: a clone or a tag is not there; its messages would go missing from the list
    """
    for name in names or SOURCES:
        source = SOURCES[name]
        found: set[str] = set()
        read: set[str] = set()
        for tag in source.tags:
            listed = _git(folder / source.project, "ls-tree", "-r", tag, "--", *source.paths)
            if listed is None:
                raise StepError(f"{folder / source.project} has no {tag}", "Clone the project there, with its tags")
            # an older release may lack one of the files
            for line in listed.splitlines():
                head, file = line.split("\t", 1)
                blob = head.split()[2]
                if blob not in read and file.endswith(_ENDINGS) and not source.but.search(file):
                    read.add(blob)
                    found |= read_messages(_git(folder / source.project, "cat-file", "blob", blob) or "", source.calls)
        path = FOLDER / f"{name}.txt"
        path.write_text(
            f"# {source.project} {', '.join(source.tags)}\n" + "".join(f"{line}\n" for line in sorted(found)),
            encoding="utf-8",
        )
        print(f"{path.relative_to(ROOT)}: {len(found)} messages")


def _git(clone: pathlib.Path, *arguments: str) -> typing.Optional[str]:
    """Return what git says; None where it fails."""
    done = subprocess.run([*_GIT, "-C", str(clone), *arguments], capture_output=True, check=False)
    return None if done.returncode else done.stdout.decode(errors="replace")


if __name__ == "__main__":
    guarded(lambda: main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
