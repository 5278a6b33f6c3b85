# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of NCCL's environment variables, from NCCL itself: ``python -m dev.nccl CLONE [LIBRARY...]``.

CLONE is a clone of NVIDIA/nccl with its tags. A LIBRARY is a release that has no tag there: the wheel ``pip download
--no-deps nvidia-nccl-cu13==2.32.3`` makes, or the ``libnccl.so.2`` of such a wheel. For a new release: fetch the tags,
or download its wheel, and run the command again.
"""

from __future__ import annotations

import pathlib
import re
import struct
import subprocess
import sys
import textwrap
import typing
import zipfile

from .steps import ROOT, StepError, guarded

TABLE = ROOT / "plugins" / "module_utils" / "_check" / "job" / "nccl_variables.py"
BEGIN, END = "# made by 'python -m dev.nccl'\n", "# end of what 'python -m dev.nccl' makes\n"
#: releases before it are not looked at
OLDEST = (2, 3, 5)

_GIT = ("git", "-c", "core.hooksPath=/dev/null")
_TAG = re.compile(r"v([0-9]+)\.([0-9]+)\.([0-9]+)-[0-9]+")
_RELEASE = re.compile(rb"NCCL version ([0-9]+)\.([0-9]+)\.([0-9]+)\+cuda")
_NAME = r"NCCL_[A-Z0-9_]{2,80}"
#: ways in which NCCL's source reads a variable: a macro for numbers, one of 2.30 and later for all, and calls, one of
#: which takes two names
_READS = (
    (re.compile(r"(?<!_)\bNCCL_PARAM\s*\(\s*\w+\s*,\s*\"([A-Z0-9_]+)\""), "NCCL_"),
    (re.compile(r"\bDEFINE_NCCL_PARAM\s*\(\s*\w+\s*,\s*[^,()]+,\s*(NCCL_[A-Z0-9_]+)\s*,"), ""),
    (re.compile(rf"[gG]et[eE]nv\w*\s*\(\s*\"({_NAME})\""), ""),
    (re.compile(rf"\bncclGetLevel\s*\([^;]*?\"({_NAME})\"\s*(?:,|\))"), ""),
    (re.compile(rf"\bncclGetLevel\s*\([^;]*\"({_NAME})\"\s*\)"), ""),
)
_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"])//[^\n]*", re.DOTALL)

Release = tuple[int, ...]


def read_source(text: str) -> set[str]:
    """Return the variables that a file of NCCL's source reads."""
    code = _COMMENT.sub(" ", text.replace("\\\n", ""))
    return {prefix + found[1] for pattern, prefix in _READS for found in pattern.finditer(code)}


def read_library(data: bytes, before: typing.AbstractSet[str]) -> tuple[Release, set[str]]:
    """Return the release of a built library, and the variables that it reads: names that are texts of their own among
    its constants. Held against the source of 2.30.7 these are all of its variables, and nothing else.

    :param before: variables of the release before it. A linker lets a text share the end of a longer one, so one of
        these may also stand at the end of another text
    :raises StepError: it is no such library
    """
    constants = _read_constants(data)
    release = _RELEASE.search(constants)
    if release is None:
        raise StepError("a library does not say which release of NCCL it is", "Give libnccl.so.2, or its wheel")
    whole = {name.decode() for name in re.findall(rb"(?<=\0)%b(?=\0)" % _NAME.encode(), constants)}
    shared = {name.decode() for name in re.findall(rb"(?<![A-Z0-9_])%b(?=\0)" % _NAME.encode(), constants)}
    return tuple(map(int, release.groups())), whole | shared & before


def _read_constants(data: bytes) -> bytes:
    """Return the section .rodata of an ELF file of 64 bits: debug information names types and values, too."""
    if data[:5] != b"\x7fELF\x02":
        raise StepError("a library is no ELF file of 64 bits", "Give libnccl.so.2, or its wheel")
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", data, start + number * size) for number in range(count)]
    for head in heads:
        at = heads[names][4] + head[0]
        if data[at : data.index(b"\0", at)] == b".rodata":
            return data[head[4] : head[4] + head[5]]
    raise StepError("a library has no constants", "Give libnccl.so.2, or its wheel")


def read_tags(clone: pathlib.Path) -> dict[Release, set[str]]:
    """Return the variables of each release that has a tag.

    :raises StepError: there is no such clone
    """
    newest: dict[Release, str] = {}
    for tag in _git(clone, "tag").split():
        found = _TAG.fullmatch(tag)
        if found and tuple(map(int, found.groups())) >= OLDEST:
            newest[tuple(map(int, found.groups()))] = max(tag, newest.get(tuple(map(int, found.groups())), ""))
    read: dict[str, set[str]] = {}
    releases = {}
    for release, tag in sorted(newest.items()):
        files = [
            line.split("\t")[0].split()[2]
            for line in _git(clone, "ls-tree", "-r", tag, "--", "src").splitlines()
            if line.endswith((".cc", ".cu", ".h", ".h.in", ".c", ".cpp"))
        ]
        for blob in files:
            if blob not in read:
                read[blob] = read_source(_git(clone, "cat-file", "blob", blob))
        releases[release] = set().union(*(read[blob] for blob in files))
    return releases


def _git(clone: pathlib.Path, *arguments: str) -> str:
    done = subprocess.run([*_GIT, "-C", str(clone), *arguments], capture_output=True, check=False)
    if done.returncode:
        raise StepError(f"git {arguments[0]} failed in {clone}: {done.stderr.decode()}", "Clone NVIDIA/nccl there")
    return done.stdout.decode(errors="replace")


def write(releases: typing.Mapping[Release, typing.AbstractSet[str]]) -> str:
    """Return the tables for these releases."""
    newest = max(releases)
    known = releases[newest]
    last: dict[str, Release] = {}
    for release, names in sorted(releases.items()):
        last.update(dict.fromkeys(names, release))
    gone = {name: release for name, release in sorted(last.items()) if name not in known}
    words = textwrap.fill(" ".join(sorted(name[5:] for name in known)), 120, break_on_hyphens=False)
    rows = "".join(f'    "{name}": "{_say(release)}",\n' for name, release in gone.items())
    return (
        f'#: release that KNOWN follows\nRELEASE = "{_say(newest)}"\n\n'
        "#: read by RELEASE; most of them by earlier ones, too\n"
        f'KNOWN = frozenset(\n    f"NCCL_{{name}}"\n    for name in """\n{words}\n""".split()\n)\n\n'
        f"#: read once, each with the last release that did\nGONE: dict[str, str] = {{\n{rows}}}\n"
    )


def _say(release: Release) -> str:
    return ".".join(map(str, release))


def main(clone: pathlib.Path, libraries: typing.Sequence[pathlib.Path]) -> None:
    """Write the tables.

    :raises StepError: something is not what it should be
    """
    releases = read_tags(clone)
    for path in libraries:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                data = wheel.read("nvidia/nccl/lib/libnccl.so.2")
        else:
            data = path.read_bytes()
        release, names = read_library(data, releases[max(releases)])
        releases[release] = names
    text = TABLE.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise StepError(f"{TABLE.relative_to(ROOT)} has no place for the tables", f"Put them between {BEGIN}and {END}")
    made = write(releases)
    TABLE.write_text(f"{before}{begin}\n{made}\n{end}{after}", encoding="utf-8")
    print(
        f"{TABLE.relative_to(ROOT)}: {len(releases)} releases, {'changed' if old.strip() != made.strip() else 'same'}"
    )


if __name__ == "__main__":
    guarded(lambda: main(pathlib.Path(sys.argv[1]), [pathlib.Path(path) for path in sys.argv[2:]]))
