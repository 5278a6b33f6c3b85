# SPDX-License-Identifier: GPL-3.0-or-later

"""Text from outside on its way out: to a terminal, OpenMetrics, JUnit, HTML, YAML. It drives nothing, begins no line of
its own, and stays text."""

from __future__ import annotations

import json
import pathlib
import shutil
import threading
import typing
from xml.etree import ElementTree

import hypothesis
import hypothesis.strategies as some
import pytest
import yaml
from ansible.errors import AnsibleActionFail, AnsibleActionSkip, AnsibleConnectionFailure, AnsibleError
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ansible_collections.linerate.rdma.plugins.action.on_node import MOST_BYTES
from ansible_collections.linerate.rdma.plugins.callback.stages import CallbackModule
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import open_progress
from ansible_collections.linerate.rdma.plugins.module_utils._app.again import rejudge_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.proposal import (
    LeftOut,
    Proposal,
    Section,
    Sections,
    Value,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, Finding, judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import CLOSED, Record, describe_record
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.proposal import render
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.junit import render_junit
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.metrics import render_metrics
from ansible_collections.linerate.rdma.plugins.module_utils._report.markup import markup
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import limit_answers, marked_loss
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import Unreachable, remove_effects
from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import follow
from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal.lines import lines_of
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "judge" / "run"
RUN, TIME = "20260102T030405Z-a1b2c3", "2026-01-02T03:04:05+00:00"
GREEN = "linerate.rdma: GREEN - all 15 gates are open"
#: a parser that is not ours
PARSE: typing.Callable[[str], typing.Iterable[typing.Any]] = text_string_to_metric_families
#: an escape that clears the screen, a mark that turns the line around, and a line end before a verdict
HOSTILE = f"worker-1\x1b[2J\u202e\x9b\r\n{GREEN}\x85\u2028{GREEN}"


def is_harmless(text: str) -> bool:
    """Whether nothing in it drives a terminal, and no line of it begins as a verdict does."""
    return text.replace("\n", "").isprintable() and not any(
        line.startswith("linerate.rdma:") for line in text.split("\n")
    )


# a terminal


@hypothesis.given(some.text(max_size=60))
def test_no_text_drives_a_terminal_or_begins_a_line(text: str) -> None:
    assert escape.escape_line(text).isprintable()
    first, *rest = escape.escape_lines(text).split("\n")
    assert all(line == "" or line.startswith(" ") for line in rest) and first.isprintable()


def test_names_that_become_the_same_label_cost_no_square() -> None:
    names = [chr(0x4E00 + number) for number in range(12_000)]
    # a quadratic one takes a minute
    with bounded(1):
        labels = escape.label_names([*names, "version_3", "version"])
    assert len(set(labels.values())) == len(labels) == 12_002


def test_progress_of_a_module_is_one_harmless_line(tmp_path: pathlib.Path) -> None:
    path, done, shown = tmp_path / "progress", threading.Event(), typing.cast(list[str], [])
    with open_progress(str(path)) as say:
        say(HOSTILE)
    done.set()
    follow(str(path), done, shown.append)
    assert len(shown) == 1 and is_harmless(shown[0])
    path.write_text(f"worker-1 \x1b]0;x\x07\u202e\n{GREEN}\n", encoding="utf-8")
    shown.clear()
    follow(str(path), done, shown.append)
    assert all(map(is_harmless, shown)), "also of a module that is not ours"


class Shown:
    """In the place of Ansible's display."""

    verbosity = 0

    def __init__(self) -> None:
        self.said: list[str] = []
        self._lock = threading.Lock()

    def display(self, text: str, color: typing.Optional[str] = None) -> None:
        self.said.append(text)


def test_the_callback_shows_no_raw_text_and_no_verdict_but_the_last() -> None:
    callback = CallbackModule()
    callback._display = shown = Shown()
    callback._screen._heading = f"== {HOSTILE}"
    callback._screen.show_lines([HOSTILE, f"changed: {HOSTILE}", GREEN])
    for line in lines_of({"msg": HOSTILE}) or []:
        callback._screen.show_line(line)
    assert shown.said and all(is_harmless(text.lstrip("\n")) for text in shown.said)


def test_a_message_has_no_line_ends_but_its_own() -> None:
    assert lines_of({"msg": "a\u2028b\x85c\x0bd\ne"}) == ["a\u2028b\x85c\x0bd", "e"]


def test_an_error_of_ours_is_safe_for_a_terminal() -> None:
    assert is_harmless(str(RdmaError(HOSTILE, HOSTILE)))


def test_a_judgement_is_safe_for_a_terminal() -> None:
    finding = Finding("fabric.one_master", HOSTILE, FAIL, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    record = Record("fabric", RUN, TIME, TIME, False, CLOSED, judge([finding]).judged, (HOSTILE,))
    assert all(map(is_harmless, describe_record(record)))


# OpenMetrics


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in PARSE(text):
        for item in family.samples:
            found.setdefault(item.name, []).append((item.labels, item.value))
    return found


def test_a_report_that_was_judged_again_is_valid_openmetrics_and_no_version_makes_it_green(
    tmp_path: pathlib.Path,
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SCENARIO, folder)
    start = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    start["versions"] = {
        "x 1\nlinerate_rdma_green 1\n# EOF\n": "1",
        "run": "2",
        "": "3",
        "9-a": 'b"\\\n',
        "a-b": "4",
        "a.b": "5",
        **start["versions"],
    }
    (folder / "run.json").write_text(json.dumps(start), encoding="utf-8")
    (folder / "facts" / "hcas" / "node-1.json").unlink()
    answer = rejudge_run(str(folder), str(tmp_path / "judged"), {}, "2.19.0")
    text = (tmp_path / "judged" / "report.prom").read_text(encoding="utf-8")
    found = samples(text)
    assert not answer["green"] and found["linerate_rdma_green"] == [({}, 0.0)]
    assert text.count("\n# EOF\n") == 1
    ((labels, _one),) = found["linerate_rdma_run_info"]
    assert (
        labels["linerate_rdma_of_the_run"] == "1.0.0"
        and {"4", "5", "2", "3"} <= set(labels.values())
        and labels["run"] == RUN
    )


@hypothesis.given(some.dictionaries(some.text(max_size=12), some.text(max_size=12), max_size=5))
def test_any_version_is_a_label_of_its_own(versions: dict[str, str]) -> None:
    found = samples(render_metrics(build_report({}, {}, RUN, TIME, versions)))
    ((labels, _one),) = found["linerate_rdma_run_info"]
    assert len(labels) == 2 + len(versions) and found["linerate_rdma_green"] == [({}, 0.0)]


# JUnit, HTML


def test_junit_stays_one_document() -> None:
    finding = Finding(
        "fabric.one_master", f"]]></failure><x/>{HOSTILE}\x00\ufffe", FAIL, HOSTILE, HOSTILE, "<!ENTITY x>", HOSTILE
    )
    record = Record("fabric", RUN, TIME, TIME, False, CLOSED, judge([finding]).judged)
    root = ElementTree.fromstring(render_junit(build_report({"fabric": record}, {}, RUN, TIME, {HOSTILE: HOSTILE})))
    assert {item.tag for item in root.iter()} <= {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "properties",
        "property",
        "system-out",
        "skipped",
    }
    assert "\\u202e" in ElementTree.tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", " JavaScript:x", "java\tscript:x", "data:text/html,x", "vbscript:x", "\x01javascript:x"],
)
def test_no_link_of_a_page_runs_anything(target: str) -> None:
    assert "href" not in markup.render_element("a", "x", href=target)


@pytest.mark.parametrize(
    "target",
    ["#fabric", "facts/hcas/", "difference.html", "https://docs.example/a.html", "http://docs.example/", "../x.html"],
)
def test_links_of_a_page_stay(target: str) -> None:
    assert f'href="{target}"' in markup.render_element("a", "x", href=target)


# YAML


@hypothesis.given(some.text(max_size=40))
def test_a_comment_of_a_proposal_is_no_yaml(text: str) -> None:
    hostile = f"x{text}\nrdma_waivers: []\x85rdma_a: 1\u2028rdma_b: 2"
    proposal = Proposal(
        Sections(
            (Section((("name", Value("compute", hostile)), ("resource", Value(text, hostile))), hostile),), hostile
        ),
        Section((("disruption", Value("none", hostile)),), hostile),
        (LeftOut(hostile, hostile),),
        (hostile,),
    )
    found = yaml.load(render(proposal), Loader=Loader)
    assert found == {"rdma_fabrics": [{"name": "compute", "resource": text}], "rdma_cluster": {"disruption": "none"}}


class Loader(yaml.SafeLoader):
    """With Ansible's mark of a text that is no template."""


Loader.add_constructor("!unsafe", lambda loader, node: node.value)


@pytest.mark.parametrize("text", ["{{ lookup('pipe', 'id') }}", "{% set x = 1 %}", "a{# x #}"])
def test_what_a_node_says_is_no_template_of_the_proposal(text: str) -> None:
    proposal = Proposal(
        Sections((Section((("devices", Value((text, "mlx5_0"), "")), ("name", Value(text, ""))), ""),), ""),
        Section((), ""),
    )
    lines = [line for line in render(proposal).splitlines() if "{" in line and "rdma_cluster" not in line]
    assert len(lines) == 2 and all("!unsafe" in line for line in lines)


@pytest.mark.parametrize("kind", [AnsibleError, AnsibleActionFail, AnsibleActionSkip])
def test_what_a_node_says_of_a_file_that_it_does_not_take_is_one_line_and_short(kind: type[AnsibleError]) -> None:
    """Without pipelining ansible.builtin.ssh raises its words as they are."""
    with pytest.raises(kind) as raised, marked_loss():
        raise kind(f"failed to transfer file to /tmp/x /tmp/y:\n\n{HOSTILE}{'x' * 1_000_000}")
    made = raised.value
    words = [str(made), *(text for text in getattr(made, "result", {}).values() if isinstance(text, str))]
    assert words[-1].startswith("failed to transfer file to /tmp/x /tmp/y:\\n\\n") and made.__suppress_context__
    assert all(is_harmless(text) and "\n" not in text and len(text) < 5000 for text in words)


def test_what_an_action_says_beside_its_error_acts_on_nothing() -> None:
    with pytest.raises(AnsibleActionFail) as raised, marked_loss():
        raise AnsibleActionFail("no", result={"ansible_facts": {"rdma_kubeconfig": "x"}, "module_stderr": HOSTILE})
    assert set(raised.value.result) == {"failed", "msg", "module_stderr"}
    # ansible-core shows it as a text of several lines, each indented
    assert not {"\x1b", "\u202e", "\x9b"} & set(raised.value.result["module_stderr"])


def test_what_a_host_says_before_the_login_is_one_line_and_short() -> None:
    banner = HOSTILE + "x" * 1_000_000
    with pytest.raises(Unreachable) as raised, marked_loss():
        raise AnsibleConnectionFailure(f"Make sure this host can be reached over ssh: {banner}")
    shown = str(raised.value)
    assert is_harmless(shown) and "\n" not in shown and len(shown) < 5000 and raised.value.__suppress_context__


def test_a_difference_that_a_node_tells_is_cut_before_it_is_compared() -> None:
    """difflib takes the cube of lines that come again: 52 kB of them took 9 s in ansible-playbook itself."""
    before, after = ("".join(f"{i * step % 150}\n" for i in range(100_000)) for step in (1, 7))
    kept = remove_effects(
        {
            "changed": True,
            "diff": [{"before": before, "after": after}, {"before": {"a": ["x\n"] * 100_000}, "after": {"b": 1}}] * 100,
        }
    )["diff"]
    assert len(kept) == 8
    for item in kept[::2]:
        for side, whole in (("before", before), ("after", after)):
            *lines, last = item[side].splitlines()
            assert (
                last == f"... truncated: it has {len(whole)} characters"
                and whole.startswith("\n".join(lines))
                and len(lines) == 200
            )
    assert all(
        isinstance(item["before"], str) and len(item["before"]) < 10_000 and item["after"] == {"b": 1}
        for item in kept[1::2]
    )


def test_of_warnings_of_a_node_the_first_are_shown_and_how_many_there_are() -> None:
    answer = remove_effects({"warnings": ["x" * 10_000] * 5_000, "deprecations": [{"msg": "y" * 10_000}] * 5_000})
    assert (
        len(answer["warnings"]) == 21
        and answer["warnings"][-1] == "and 4980 more warnings"
        and all(len(text) < 2_100 for text in answer["warnings"])
    )
    assert len(answer["deprecations"]) == 20 and all(len(item["msg"]) < 2_100 for item in answer["deprecations"])


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ('{"x": [' + "{}," * 8_000 + "{}]}", "JSON of 16003 values"),
        ('{"stdout": "' + "[0," * 60_000 + '"}', "180014 bytes"),
    ],
)
def test_an_answer_that_would_be_large_once_decoded_is_not_decoded(answer: str, seen: str) -> None:
    """It is registered, shown as a whole where it failed, and on older cores parsed as Python."""

    class Host:
        def exec_command(self, *_words: typing.Any, **_options: typing.Any) -> tuple[int, bytes, bytes]:
            return 0, answer.encode(), b""

    class Action:
        def __init__(self) -> None:
            self._connection = Host()

        def _parse_returned_data(self, said: typing.Mapping[str, typing.Any]) -> typing.Any:
            return json.loads(said["stdout"])

        def run(self) -> typing.Any:
            _code, output, _error = self._connection.exec_command("python3")
            return self._parse_returned_data({"stdout": output.decode()})

    action = Action()
    with pytest.raises(AnsibleConnectionFailure, match=seen), limit_answers(action, "node-1", MOST_BYTES):
        action.run()
