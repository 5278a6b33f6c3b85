# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of the sentences of findings."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import (
    count_of,
    describe_read_remedy,
    format_clause,
    format_duration,
    format_estimate,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, PASS, Finding, add_rerun


@pytest.mark.parametrize(
    ("number", "nouns", "text"),
    [
        (0, ("node",), "0 nodes"),
        (1, ("node",), "1 node"),
        (2, ("node",), "2 nodes"),
        (1, ("query", "queries"), "1 query"),
        (2, ("query", "queries"), "2 queries"),
        (1, ("HCA has", "HCAs have"), "1 HCA has"),
    ],
)
def test_a_noun_has_the_number_of_its_things(number: int, nouns: tuple[str, ...], text: str) -> None:
    assert count_of(number, *nouns) == text


def test_remedy_for_unread_objects_names_the_right_and_other_errors() -> None:
    remedy = describe_read_remedy("Then run stage host again.")
    assert remedy.startswith("If the error contains 'forbidden', ") and "kubectl apply -f docs/rbac/look.yml" in remedy
    assert "Otherwise correct what the error names" in remedy and remedy.endswith("Then run stage host again.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("No topology was read.", "No topology was read"),
        ("timed out", "timed out"),
        ("waits for ...", "waits for ..."),
        (" \n", "no reason was reported"),
        ("", "no reason was reported"),
        (None, "no reason was reported"),
    ],
)
def test_a_sentence_ends_once(text: typing.Optional[str], words: str) -> None:
    assert format_clause(text) == words


def test_words_for_a_reason_that_is_missing() -> None:
    assert format_clause(None, "the node was not queried") == "the node was not queried"


@pytest.mark.parametrize(
    ("remedy", "expected"),
    [
        ("Correct the port.", "Correct the port. Then run stage fabric again."),
        ("Correct the port", "Correct the port. Then run stage fabric again."),
        ("Run the job again.", "Run the job again. Then run stage fabric again."),
        ("Then run stage fabrics again.", "Then run stage fabrics again. Then run stage fabric again."),
        ("Then run stage fabric again.", "Then run stage fabric again."),
        ("Run stages fabric, network and job again, and wait.", "Run stages fabric, network and job again, and wait."),
    ],
)
def test_a_remedy_names_the_step_to_run_again_once(remedy: str, expected: str) -> None:
    failed, passed = Finding("fabric.port", "a", FAIL, why="down", remedy=remedy), Finding("fabric.port", "b", PASS)
    found, unchanged = add_rerun((failed, passed), "fabric", "Then run stage fabric again.")
    assert found.remedy == expected and unchanged is passed


@pytest.mark.parametrize(
    ("seconds", "estimate", "limit"),
    [
        (0, "less than a minute", "less than a minute"),
        (59.9, "less than a minute", "less than a minute"),
        (60, "about 1 min", "1 min"),
        (7139, "about 119 min", "119 min"),
        (7500, "about 2 h 05 min", "2 h 05 min"),
    ],
)
def test_a_duration_is_never_zero_minutes(seconds: float, estimate: str, limit: str) -> None:
    assert (format_estimate(seconds), format_duration(seconds)) == (estimate, limit)
