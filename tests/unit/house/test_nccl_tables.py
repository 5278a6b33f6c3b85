# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of NCCL's variables are made from NCCL's own source and libraries (dev/nccl.py)."""

from __future__ import annotations

import struct
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job import nccl_variables
from dev import nccl
from dev.steps import ROOT, StepError

SOURCE = r"""
NCCL_PARAM(IbTimeout, "IB_TIMEOUT", 20);
NCCL_PARAM(IbUseInline,
           "IB_USE_INLINE", 0);
DEFINE_NCCL_PARAM(ncclParamDebugFile, const char*, NCCL_DEBUG_FILE, nullptr, NCCL_PARAM_FLAG_CACHED);
const char* file = ncclGetEnv("NCCL_TOPO_FILE");
char* hca = getenv("NCCL_IB_HCA");
NCCLCHECK(ncclGetLevel(&level, "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"));
NCCLCHECK(ncclGetLevel(&gdr, NULL, "NCCL_NET_GDR_LEVEL"));
// NCCL_PARAM(Old, "OLD", 0);
WARN("verify NCCL_OOB_NET_IFNAME, see NCCL_LOG_WARN");
"""


def library(texts: typing.Sequence[str]) -> bytes:
    """Return an ELF file whose constants are these, and whose debug information has others."""
    sections = {
        b"": b"",
        b".rodata": b"\0".join([b"", *(text.encode() for text in texts), b""]),
        b".debug_str": b"\0NCCL_LOG_WARN\0",
        b".shstrtab": b"",
    }
    names = b"\0".join([*sections, b""])
    sections[b".shstrtab"] = names
    body, heads, start = b"", b"", 64
    for name, data in sections.items():
        at = names.index(name + b"\0") if name else 0
        heads += struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, start + len(body), len(data), 0, 0, 1, 0)
        body += data
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", head, 0x28, start + len(body))
    struct.pack_into("<HHH", head, 0x3A, 64, len(sections), len(sections) - 1)
    return bytes(head) + body + heads


def test_variables_are_what_the_source_reads() -> None:
    assert nccl.read_source(SOURCE) == {
        "NCCL_IB_TIMEOUT",
        "NCCL_IB_USE_INLINE",
        "NCCL_DEBUG_FILE",
        "NCCL_TOPO_FILE",
        "NCCL_IB_HCA",
        "NCCL_P2P_DISABLE",
        "NCCL_P2P_LEVEL",
        "NCCL_NET_GDR_LEVEL",
    }


def test_variables_of_a_library_are_texts_of_their_own() -> None:
    texts = [
        "NCCL version 2.32.3+cuda12.9",
        "NCCL_IB_HCA",
        "set NCCL_NET_OVERHEAD",
        "verify NCCL_NEVER_A_VARIABLE",
        "NCCL_IB_RAIL_POLICY: unknown",
    ]
    assert nccl.read_library(library(texts), {"NCCL_NET_OVERHEAD"}) == (
        (2, 32, 3),
        {"NCCL_IB_HCA", "NCCL_NET_OVERHEAD"},
    )


@pytest.mark.parametrize("data", [b"#!/bin/sh\n", library(["NCCL_IB_HCA"])])
def test_library_of_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(StepError):
        nccl.read_library(data, set())


def test_table_of_the_collection_is_one_that_the_script_writes() -> None:
    newest = tuple(map(int, nccl_variables.RELEASE.split(".")))
    releases: dict[nccl.Release, set[str]] = {newest: set(nccl_variables.KNOWN)}
    for name, release in nccl_variables.GONE.items():
        releases.setdefault(tuple(map(int, release.split("."))), set()).add(name)
    text = nccl.TABLE.read_text(encoding="utf-8")
    assert text.partition(nccl.BEGIN)[2].partition(nccl.END)[0].strip() == nccl.write(releases).strip()


def test_page_on_jobs_names_the_release_of_the_table() -> None:
    assert f"NCCL ({nccl_variables.RELEASE})" in (ROOT / "docs" / "job.md").read_text(encoding="utf-8")
