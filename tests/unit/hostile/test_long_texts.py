# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of a node that are as long as an answer may be: no step on their way takes many times their memory."""

from __future__ import annotations

import contextlib
import tracemalloc
import types
import typing

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Answer
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.config_daemon_log import last_error
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster import read_by_observers
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import limit_answers
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import remove_effects

#: of a text that is cut, with how long it was
CUT = 128 * 1024 + 100
#: of what ansible-core takes for ends of lines
ENDS = ("\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


@contextlib.contextmanager
def at_most(mib: int) -> typing.Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < mib * MIB, f"{peak >> 20} MiB"


@pytest.mark.parametrize(("sign", "shown"), [("\x7f", "\\x7f"), ("\u0101", "\u0101"), ("\u200b", "\\u200b")])
def test_a_text_is_escaped_piece_by_piece(sign: str, shown: str) -> None:
    text = sign * MIB + "\x01\n"
    # one sign after the other, they took 60 MiB and more
    with at_most(20):
        seen = escape.escape_nonprinting(text)
    assert seen == shown * MIB + "\\x01\n"


@pytest.mark.parametrize("key", ["msg", "module_stdout", "module_stderr", "skip_reason", "exception", "other"])
def test_a_text_of_an_answer_that_failed_is_cut(key: str) -> None:
    answer = {"failed": True, key: "\x7f" * (2 * MIB)}
    with at_most(8):
        found = remove_effects(answer)
    assert found["failed"] is True and found[key].startswith("\\x7f\\x7f")
    assert found[key].endswith(f"... ({2 * MIB} characters)") and len(found[key]) < 4 * CUT


LARGE: tuple[typing.Any, ...] = (list(range(200_000)), {"a": ["\u0101" * MIB]}, [{"a": "b"}] * 100_000)


@pytest.mark.parametrize("large", LARGE, ids=["list", "text", "mappings"])
def test_of_other_values_no_more_is_made_than_is_shown(large: typing.Any) -> None:
    with at_most(4):
        found = remove_effects({"msg": large, "failed": True, "warnings": [large], "hcas": large})
    kind = "a mapping" if isinstance(large, dict) else "a list"
    said = f"{kind}, left out: it has more than 131072 characters"
    assert found == {"msg": said, "failed": True, "warnings": [said], "hcas": said}


def test_values_that_are_shown_stay_as_they_are() -> None:
    data = {"a": [1, None, "x\x1b", 2.5, True]}
    found = remove_effects({"msg": data, "failed": True, "hcas": data})
    assert found["hcas"] == {"a": [1, None, "x\\x1b", 2.5, True]}
    assert found["msg"] == '{"a": [1, null, "x\\u001b", 2.5, true]}'


def test_what_did_not_fail_keeps_its_data() -> None:
    text = "x" * (MIB // 2)
    assert remove_effects({"hcas": {"text": text}, "stdout": text}) == {"hcas": {"text": text}, "stdout": text}


def action(said: bytes = b"", errors: bytes = b"", **parsed: typing.Any) -> typing.Any:
    connection = types.SimpleNamespace(exec_command=lambda _command: (0, said, errors), most_output=1)
    return types.SimpleNamespace(_connection=connection, _parse_returned_data=lambda *_said: dict(parsed))


@pytest.mark.parametrize("end", ENDS)
def test_an_answer_of_many_lines_is_the_error_of_its_node(end: str) -> None:
    """ansible-core makes a list of its lines, whatever they are."""
    lines = f"ab{end}".encode() * 32_769
    for said in (action(lines), action(b"", lines)):
        with (
            limit_answers(said, "worker-1"),
            pytest.raises(AnsibleConnectionFailure, match="worker-1 sent 32769 lines"),
        ):
            said._connection.exec_command("python")
    enough = action(lines[: -len(f"ab{end}".encode())])
    with limit_answers(enough, "worker-1"):
        assert enough._connection.exec_command("python")[0] == 0


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_so_is_a_text_of_many_lines_in_it(name: str) -> None:
    parsed: dict[str, typing.Any] = {name: "ab\n" * 32_769}
    said = action(**parsed)
    with limit_answers(said, "worker-1"), pytest.raises(AnsibleConnectionFailure, match="32769 lines"):
        said._parse_returned_data({"stdout": "{}"})
    parsed[name] = "ab\n" * 32_768
    enough = action(**parsed)
    with limit_answers(enough, "worker-1"):
        assert enough._parse_returned_data({"stdout": "{}"}) == {name: "ab\n" * 32_768}


def test_of_the_errors_of_an_observer_the_end_alone_is_looked_at() -> None:
    asked = read_by_observers.ObserveRequest(kinds=("hcas",))
    said = b"ab " * MIB + b"no such module: json"
    timed = read_by_observers._Timed(Answer(1, b"", said), 0.0, 0.0, None)
    with at_most(4):
        (found,) = read_by_observers._shown(asked, timed).values()
    assert found.error is not None and found.error.endswith("ab no such module: json")


def test_of_a_log_the_end_alone_is_looked_at() -> None:
    failed = 'x\tERROR\tx\tReconciler error\t{"error": "no room"}\n'
    text = "ab\n" * (3 * MIB)
    # all of its lines took 180 MiB
    with at_most(120):
        assert last_error(failed + text) == ""
    assert last_error(text + failed) == "no room" == last_error(failed + "ab\n" * 1000)
