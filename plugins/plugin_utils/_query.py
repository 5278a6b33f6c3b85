# SPDX-License-Identifier: GPL-3.0-or-later

"""Evaluate JMESPath queries over the facts of a run. Pure, apart from the library jmespath."""

from __future__ import annotations

import json
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text

try:
    import jmespath
    import jmespath.exceptions
except ImportError:  # pragma: no cover
    jmespath = None  # type: ignore[assignment]

Data = dict[str, typing.Any]
#: lines on a terminal; the result has all
MOST_LINES = 500
#: characters of an error, which quotes the fact
_MOST_OF_AN_ERROR = 300


class QueryError(RdmaError):
    """The error of an invalid query, or of a query that could not be evaluated for any node. For a syntax error, the
    message shows its position.
    """


def compile_query(query: str) -> typing.Any:
    """Return the compiled form of a JMESPath query.

    :param query: text of the query
    :raises QueryError: the query is not valid JMESPath, or the library is not installed
    """
    if jmespath is None:
        raise QueryError(
            "the Python library jmespath is not installed on the controller", "Install it: pip install jmespath"
        )
    try:
        return jmespath.compile(query)
    except jmespath.exceptions.JMESPathError as error:
        place = getattr(error, "lex_position", None)
        shown = query.replace("\n", " ")
        # an empty question, or one that ends too early, is wrong at its end
        mark = " " * (len(shown) if place is None or place > len(shown) else place) + "^"
        cause = " ".join(str(error).split("\n", maxsplit=1)[0].split())
        raise QueryError(
            f"rdma_query is not a valid JMESPath expression: {cause}\n  {shown}\n  {mark}\n",
            "See https://jmespath.org for its grammar",
        ) from error


def ask(
    question: typing.Any, facts: typing.Iterable[tuple[str, Data, dict[str, str]]]
) -> tuple[list[Data], list[Data]]:
    """Evaluate a query over the facts of each node in turn.

    :param question: compiled query
    :param facts: three values for each node: its name, ``{kind: value}``, and ``{kind: error}`` for the facts that
        contain an error
    :returns: two lists: ``{node, answer}`` of each node with an answer that is not empty, and ``{node, kind, error}``
        for each fact with an error and each node whose facts the query cannot process
    :raises QueryError: the query failed for at least one node, and returned a result for no node
    """
    answers, unread, asked, refused = [], [], 0, []
    for node, values, errors in facts:
        unread += [{"node": node, "kind": kind, "error": error} for kind, error in sorted(errors.items())]
        try:
            answer = question.search(values)
        except (jmespath.exceptions.JMESPathError, TypeError, ValueError, ArithmeticError) as error:
            # the facts of a node may have any form, and the others are asked all the same; what the library compares
            # and counts, it does as Python does
            refused.append(
                {"node": node, "kind": "the answer", "error": cut_text(" ".join(str(error).split()), _MOST_OF_AN_ERROR)}
            )
            continue
        # the cluster, and nodes that were not seen, prove nothing of the question
        asked += answer is not None
        if answer is not None and answer not in ([], {}):
            answers.append({"node": node, "answer": answer})
    if refused and not asked:
        seen = f"rdma_query could not be evaluated for {refused[0]['node']}: {refused[0]['error']}"
        raise QueryError(seen, "Check the structure of the facts in the folder facts")
    return answers, [*unread, *refused]


def show(answers: typing.Sequence[Data], unread: typing.Sequence[Data]) -> list[str]:
    """Return lines for a terminal: each item of an answer with its node, followed by the facts and nodes with an error.
    Each of these two lists is cut to MOST_LINES lines and a line with the number of the remaining ones.

    :param answers: answers by node, as dictionaries with ``node`` and ``answer``
    :param unread: errors, as dictionaries with ``node``, ``kind`` and ``error``
    """
    lines = []
    for item in answers:
        parts = item["answer"] if isinstance(item["answer"], list) else [item["answer"]]
        lines += [
            f"{item['node']}: {part if isinstance(part, str) else json.dumps(part, sort_keys=True)}" for part in parts
        ]
    lines = lines or ["No result: no node reports a matching value."]
    missing = [f"not read: {item['kind']} of {item['node']}: {item['error']}" for item in unread]
    return [part for found in (lines, missing) for part in _limit_lines(found)]


def _limit_lines(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES} more"]
