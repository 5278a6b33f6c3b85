# SPDX-License-Identifier: GPL-3.0-or-later

"""No regular expression of the plugins is worse than linear, whatever the text."""

from __future__ import annotations

import re

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.redact import REDACTED, redact_text
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.inventory import inventory_node
from ansible_collections.linerate.rdma.tests.unit.limit import bounded
from tests.unit.hostile.patterns import Use, slow, uses


def test_each_pattern_of_the_plugins_is_linear_on_texts_that_are_made_against_it() -> None:
    found = uses()
    assert len(found) > 250
    assert [said for said in map(slow, found) if said] == []


@pytest.mark.parametrize(
    ("method", "pattern"),
    [
        ("search", r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}"),
        ("sub", r"[\s(]+v?\d.*"),
        ("search", "(a+)+b"),
        ("fullmatch", "(a|aa)+"),
        ("fullmatch", r"'.*' .* Node GUID"),
        ("finditer", "x.*y.*z"),
        ("search", r"\s+$"),
        # at each line, at each word, and behind each blank
        ("findall", r"(?m)^[ \t]*default_ulimits[ \t]*=[ \t]*\[([^\]]*)\]"),
        ("search", r"\bcount=[^\]]*\]"),
        ("search", r"(?<!\S)-u[^\]]*\]"),
        # each ends after a bounded number of steps, which multiply
        ("fullmatch", r"for GPU.{1,80}?(?:HCA |NET/[0-9]{1,9}-)([0-9a-f]{1,16}).{0,60}?\(.{0,60}?(distance [0-9])\)"),
    ],
)
def test_patterns_that_are_worse_are_found(method: str, pattern: str) -> None:
    assert slow(Use("here", re.compile(pattern), method))


@pytest.mark.parametrize(
    ("method", "pattern"),
    [("match", r"[\s(]+v?\d.*"), ("search", "a+b?"), ("fullmatch", r"rendered-(.+)-[0-9a-f]{32}")],
)
def test_patterns_that_are_linear_are_not_accused(method: str, pattern: str) -> None:
    assert slow(Use("here", re.compile(pattern), method)) == ""


def test_a_megabyte_of_beginnings_of_tokens_is_looked_through_at_once() -> None:
    with bounded(10):
        assert redact_text("-eyJ" * 250_000) == "-eyJ" * 250_000
        assert redact_text("-eyJ" * 250_000 + ".abc") == "-eyJ" * 250_000 + ".abc"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token eyJhbGciOi.eyJpc3Mi.sig-na_ture here", f"token {REDACTED} here"),
        ("eyJhbGciOi.eyJpc3Mi", REDACTED),
        ("eyJhbGciOi.eyJpc3Mi.", f"{REDACTED}."),
        ("a-eyJhbGciOi.eyJpc3Mi.x", f"a-{REDACTED}"),
        ("host.eyJhbGciOi.eyJpc3Mi", f"host.{REDACTED}"),
        ("eyJhbG.eyJhbGciOi.eyJpc3Mi", f"eyJhbG.{REDACTED}"),
        ("keyJhbGciOi.abcdefgh eyJhb.abcde eyJhbGciOi.abcd", "keyJhbGciOi.abcdefgh eyJhb.abcde eyJhbGciOi.abcd"),
    ],
)
def test_tokens_are_taken_out(text: str, expected: str) -> None:
    assert redact_text(text) == expected


def test_the_name_of_an_image_costs_no_square_of_its_length() -> None:
    node = {"metadata": {"name": "worker-1"}, "status": {"nodeInfo": {"osImage": "Ubuntu" + " " * 1_000_000 + "x"}}}
    with bounded(5):
        inventory_node(node)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("Ubuntu 22.04.4 LTS", "Ubuntu"),
        ("Talos (v1.9.1)", "Talos"),
        ("Bottlerocket OS 1.20.3 (aws-k8s-1.29)", "Bottlerocket OS"),
    ],
)
def test_the_name_of_an_image_without_its_version(image: str, name: str) -> None:
    node = {"metadata": {"name": "worker-1"}, "status": {"nodeInfo": {"osImage": image}}}
    assert inventory_node(node).groups["os"] == name
