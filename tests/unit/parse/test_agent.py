# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests of the program that stands in for ssh, as Open MPI 4.1.4 made them, and as they go wrong."""

from __future__ import annotations

import string

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.agent import Request, parse_requests

#: of mpirun on three hosts, without what comes behind the address
WORDS = (
    ' orted --daemonize -mca ess "env" -mca ess_base_jobid "1723072512" -mca ess_base_vpid {} -mca ess_base_num_procs'
    ' "3" -mca orte_node_regex'
    ' "linerate-collectives-compute-a,linerate-collectives-compute-b,linerate-collectives-compute-c@0(3)" -mca'
    ' orte_hnp_uri "1723072512.0;tcp://10.99.0.1:52669"'
)
CAPTURE = (
    f"ask 6312\nlinerate-collectives-compute-b\n{WORDS.format(1)}\nask"
    f" 6313\nlinerate-collectives-compute-c\n{WORDS.format(2)}\n"
)


def test_requests_of_open_mpi() -> None:
    first, second = parse_requests(CAPTURE)
    assert first == Request(6312, "linerate-collectives-compute-b", WORDS.format(1)) and (
        second.number,
        second.host[-1],
    ) == (6313, "c")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ask 1\n",
        "ask 1\nhost\n",
        "ask x\nhost\nwords\n",
        "ask 1\n-oProxyCommand=x\nwords\n",
        "ask 1\nhost with blanks\nwords\n",
        "ask 1\nhost\n\n",
        "ask 1234567890\nhost\nwords\n",
        f"ask 1\nhost\n{'x' * (1 << 18)}\n",
        "cat: agents: No such file or directory\n",
    ],
)
def test_what_is_no_request_is_none(text: str) -> None:
    assert parse_requests(text) == ()


LINE = some.text(string.ascii_letters + string.digits + ' -;"$.:', min_size=1, max_size=40).filter(
    lambda line: line.strip() != ""
)


@hypothesis.given(
    some.lists(
        some.tuples(some.integers(0, 999_999_999), some.from_regex(r"[a-z0-9]{1,20}", fullmatch=True), LINE), max_size=5
    )
)
@hypothesis.settings(max_examples=60, deadline=None)
def test_each_request_comes_back(requests: list[tuple[int, str, str]]) -> None:
    text = "".join(f"ask {number}\n{host}\n{words}\n" for number, host, words in requests)
    assert parse_requests(text) == tuple(Request(*item) for item in requests)


@hypothesis.given(some.text())
@hypothesis.settings(max_examples=60, deadline=None)
def test_no_text_raises(text: str) -> None:
    assert all(item.words for item in parse_requests(text))
