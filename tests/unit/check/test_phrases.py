# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of the sentences of findings."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import clause, count_of


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
    assert clause(text) == words


def test_words_for_a_reason_that_is_missing() -> None:
    assert clause(None, "the node was not queried") == "the node was not queried"
