# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of CRI-O in a MachineConfig."""

from __future__ import annotations

import base64
import gzip
import typing
import urllib.parse

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.crio import (
    parse_ulimits,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs

TEXT = "[crio.runtime]\ndefault_ulimits = [\n \"nofile=1:2\",\n 'stack=3:4',\n]\n"
FOLDER = "/etc/crio/crio.conf.d/"
Contents = dict[str, str]


def plain(text: str) -> Contents:
    return {"source": f"data:,{urllib.parse.quote(text)}"}


def config(files: typing.Mapping[str, Contents]) -> dict[str, typing.Any]:
    listed = [{"path": path, "contents": contents} for path, contents in files.items()]
    return {"metadata": {"name": "rendered-x"}, "spec": {"config": {"storage": {"files": listed}}}}


@pytest.mark.parametrize(
    "contents",
    [
        plain(TEXT),
        {"source": f"data:text/plain;charset=utf-8;base64,{base64.b64encode(TEXT.encode()).decode()}"},
        {
            "source": f"data:;base64,{base64.b64encode(gzip.compress(TEXT.encode())).decode()}",
            "compression": "gzip",
        },
    ],
)
def test_each_encoding_of_a_file(contents: Contents) -> None:
    assert parse_ulimits(config({f"{FOLDER}10-a.conf": contents})) == ("nofile=1:2", "stack=3:4")


def test_last_file_before_that_of_the_collection_wins() -> None:
    last = plain('default_ulimits=["core=0:0"]')
    files = {f"{FOLDER}20-b.conf": last, "/etc/crio/crio.conf": plain(TEXT), f"{FOLDER}10-a.conf": plain(TEXT)}
    assert parse_ulimits(config(files)) == ("core=0:0",)
    assert parse_ulimits(config({**files, f"{FOLDER}99-z.conf": plain(TEXT), "/etc/other": plain(TEXT)})) == (
        "core=0:0",
    )


@pytest.mark.parametrize(
    "contents",
    [
        {},
        {"source": "https://a.example/x"},
        {"source": "data:;base64,%%%"},
        {"source": "data:,x", "compression": "gzip"},
    ],
)
def test_file_that_cannot_be_read_sets_nothing(contents: Contents) -> None:
    assert parse_ulimits(config({f"{FOLDER}10-a.conf": contents})) == ()


def test_own_entries() -> None:
    (made,) = render_host_configs(HostNeeds(Memlock("machine_config", limit_gib=1, ulimits=("nofile=1:2",))))
    assert parse_ulimits(made) == ()
    assert parse_ulimits(made, own=True) == ("memlock=1073741824:1073741824", "nofile=1:2")
