# SPDX-License-Identifier: GPL-3.0-or-later

"""What the callback plugin shows of plays that are not of this collection, of what takes long, and of what is hidden. A
whole run is in test_frame."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import threading
import types
import typing

import pytest
from ansible.executor.stats import AggregateStats

from ansible_collections.linerate.rdma.plugins.callback.stages import CallbackModule
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import passed_over
from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal.lines import (
    Stage,
    choose_tone,
    describe_changed,
    describe_stop,
    describe_waiting,
    find_usual,
    format_span,
    goes_on,
    in_short,
    lines_of,
)

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOREIGN = """
- name: A play of somebody else
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Hide it
      ansible.builtin.debug:
        msg: a word that nobody may see
      no_log: true
    - name: Say it
      ansible.builtin.debug:
        msg: a word
    - name: Go on
      ansible.builtin.fail:
        msg: a reason
      ignore_errors: true
    - name: Skip
      ansible.builtin.debug:
      when: false
    - name: Each
      ansible.builtin.debug:
        msg: "{{ item }}"
      loop: [1, 2]
"""


def output(folder: pathlib.Path, callback: str, *options: str) -> str:
    (folder / "play.yml").write_text(FOREIGN, encoding="utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_STDOUT_CALLBACK": callback,
        "ANSIBLE_NOCOLOR": "1",
    }
    program = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run(
        [program, "play.yml", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.processes
def test_a_play_of_somebody_else_is_shown_as_ever(tmp_path: pathlib.Path) -> None:
    shown = output(tmp_path, "linerate.rdma.stages")
    assert "TASK [Say it]" in shown and "...ignoring" in shown and "PLAY RECAP" in shown
    assert "nobody may see" not in shown
    assert shown == output(tmp_path, "default")


class Screen:
    """In place of Ansible's display."""

    def __init__(self) -> None:
        self.verbosity = 0
        self.lines: list[str] = []
        self._lock: contextlib.AbstractContextManager[bool] = threading.RLock()

    def display(self, line: str, **_how: typing.Any) -> None:
        self.lines.append(line)


def told(task: typing.Any, host: str, **found: typing.Any) -> typing.Any:
    return types.SimpleNamespace(_task=task, _host=types.SimpleNamespace(get_name=lambda: host), _result=found)


def task(name: str, action: str = "linerate.rdma.ibping") -> typing.Any:
    return types.SimpleNamespace(
        get_name=lambda: f"linerate.rdma.reachability : {name}",
        name=name,
        action=action,
        loop=None,
        _uuid=name,
        no_log=False,
    )


@pytest.fixture
def callback(monkeypatch: pytest.MonkeyPatch) -> CallbackModule:
    """In a play of stage reachability, as Ansible would have loaded it."""
    made = CallbackModule()
    made._display = Screen()
    monkeypatch.setattr(made, "get_option", lambda _name: False, raising=False)
    monkeypatch.setattr(made._silence, "watch", lambda: None)
    playbook = ROOT / "build/collections/ansible_collections/linerate/rdma/playbooks/reachability.yml:8"
    play = types.SimpleNamespace(
        get_path=lambda: str(playbook), vars={}, get_name=lambda: "Observe", strategy="linear", check_mode=False
    )
    made.v2_playbook_on_play_start(play)
    return made


def test_what_takes_long_says_for_whom_it_waits_and_how_long_that_usually_is(callback: CallbackModule) -> None:
    begun = task("Begin", "linerate.rdma.stage_begin")
    callback.v2_playbook_on_task_start(begun, False)
    callback.v2_runner_on_ok(told(begun, "localhost", go=True, lines=[], usual_seconds=42.0, usual_runs=3))
    ping = task("Ping each port")
    callback.v2_playbook_on_task_start(ping, False)
    for number in range(6):
        callback.v2_runner_on_start(types.SimpleNamespace(get_name=lambda number=number: f"worker-{number}"), ping)
    callback.v2_runner_on_ok(told(ping, "worker-1"))
    screen = callback._display
    for seconds in (9.0, 11.0, 12.0, 21.0, 30.0):
        callback._silence.report_silence(callback._silence.since + seconds)
    assert screen.lines[0] == "\n== reachability (usually 42 s, based on 3 previous runs)"
    assert [line.partition("Ping")[0].strip() for line in screen.lines[1:]] == [
        "11 s",
        "21 s",
    ], "no more often than needed"
    assert (
        "Ping each port, waiting for worker-0, worker-2, worker-3 and 2 more; reachability has taken "
        in screen.lines[1]
    )
    callback.v2_playbook_on_task_start(task("Judge"), False)
    callback._silence.report_silence(callback._silence.since + 5.0)
    assert len(screen.lines) == 3, "another task has begun"


def test_what_is_hidden_is_not_said_and_what_changes_is(callback: CallbackModule) -> None:
    hidden = task("Show it", "ansible.builtin.debug")
    callback.v2_playbook_on_task_start(hidden, False)
    callback.v2_runner_on_ok(told(hidden, "localhost", censored="the output has been hidden", changed=False))
    assert callback._display.lines == []
    made = task("Make it")
    callback.v2_playbook_on_task_start(made, False)
    callback.v2_runner_on_ok(told(made, "localhost", changed=True))
    assert callback._display.lines == ["\n== reachability", "changed: [localhost] Make it"]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_is_dumped_of_a_result_prints(
    callback: CallbackModule, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """A module of somebody else may have failed, whose words nothing has escaped."""
    monkeypatch.setattr(callback, "get_option", lambda name: form if name == "result_format" else False, raising=False)
    words = "\x9b2J\u202elinerate.rdma: GREEN\u200b\x7f\r"
    dumped = callback._dump_results({"msg": words, f"key{words}": [words], "good": "a b"})
    assert all(sign.isprintable() or sign in "\n\t" for sign in dumped), ascii(dumped)
    assert "GREEN" in dumped and "a b" in dumped
    shown = callback._get_diff({"before": f"{words}\n", "after": "b\n", "before_header": words})
    assert not {"\x9b", "\u202e", "\u200b", "\x7f"} & set(shown) and "\\u202elinerate.rdma: GREEN" in shown
    assert (
        callback._get_item_label({"item": words, "ansible_loop_var": "item"})
        == r"\x9b2J\u202elinerate.rdma: GREEN\u200b\x7f\r"
    )
    assert callback._get_item_label({"item": {"a": 5}, "ansible_loop_var": "item"}) == {"a": 5}


def test_a_stage_that_ends_with_what_it_has_just_said_does_not_say_it_twice(callback: CallbackModule) -> None:
    lines = [
        "reachability: 1 fail - stopped here",
        "[fail] reachability.ping on worker-1",
        "    why: no answer",
        "    do: look",
    ]
    shown, stop = task("Show", "ansible.builtin.debug"), task("Stop", "ansible.builtin.fail")
    for one in (shown, stop):
        callback.v2_playbook_on_task_start(one, False)
        (callback.v2_runner_on_ok if one is shown else callback.v2_runner_on_failed)(
            told(one, "localhost", msg=lines if one is shown else "\n".join(lines))
        )
    assert callback._display.lines == ["\n== reachability", *lines, "fatal: [localhost]: Stop"]
    callback.v2_runner_on_failed(told(stop, "localhost", msg="another\nmessage"))
    assert callback._display.lines[-2:] == ["fatal: [localhost]: another", "message"]


def failed(callback: CallbackModule, name: str, *said: str, host: str = "localhost") -> None:
    """A task of the collection fails, and nothing goes on from it."""
    one = task(name)
    callback.v2_playbook_on_task_start(one, False)
    callback.v2_runner_on_failed(told(one, host, msg="\n".join(said), failure={"kind": "ApiError"}))


def end(callback: CallbackModule) -> list[str]:
    callback.v2_playbook_on_stats(failed_run())
    return typing.cast(Screen, callback._display).lines


def test_cause_that_ends_a_run_is_shown_once_in_the_last_line(callback: CallbackModule) -> None:
    failed(callback, "Ask the cluster", "connection refused by https://x. Check the kubeconfig")
    assert end(callback) == [
        "\n== reachability",
        "fatal: [localhost]: Ask the cluster",
        "localhost: 1 failed",
        "linerate.rdma: STOPPED - stage reachability: connection refused by https://x. Check the kubeconfig",
    ]


def test_cause_is_shown_before_a_verdict_that_has_the_last_line(callback: CallbackModule) -> None:
    failed(callback, "Ask the cluster", "connection refused")
    verdict = task("End", "ansible.builtin.assert")
    callback.v2_playbook_on_task_start(verdict, False)
    callback.v2_runner_on_failed(told(verdict, "localhost", msg="linerate.rdma: NOT GREEN - x"))
    assert end(callback)[-2:] == ["STOPPED - stage reachability: connection refused", "linerate.rdma: NOT GREEN - x"]


def test_later_and_rescued_failures_are_a_line_each(callback: CallbackModule, shown_by_ansible: list[str]) -> None:
    rescued = task("Start observers")
    within(rescued, block=[rescued], rescue=[task("Say why")])
    callback.v2_playbook_on_task_start(rescued, False)
    callback.v2_runner_on_failed(told(rescued, "localhost", msg="no image. Name one", failure={}))
    why = task("Say why", "ansible.builtin.debug")
    callback.v2_playbook_on_task_start(why, False)
    callback.v2_runner_on_ok(told(why, "localhost", msg="no image. Name one"))
    failed(callback, "Install", "helm failed", "its output")
    failed(callback, "Remove", "connection refused")
    ignored = task("Look")
    callback.v2_playbook_on_task_start(ignored, False)
    callback.v2_runner_on_failed(told(ignored, "worker-1", msg="no sysfs", failure={}), ignore_errors=True)
    assert shown_by_ansible == ["helm failed\nits output"], "of several lines, and so in full"
    assert end(callback) == [
        "\n== reachability",
        "fatal: [localhost]: Start observers: no image. Name one",
        "fatal: [localhost]: Remove: connection refused",
        "fatal: [worker-1]: Look: no sysfs - ignored",
        "localhost: 1 failed",
        "linerate.rdma: STOPPED - stage reachability: helm failed; see the output above",
    ]


def test_host_that_does_not_answer_is_one_line_until_the_reason_changes(callback: CallbackModule) -> None:
    reason = "Failed to connect to the host via ssh: no route"
    for name in ("Look", "Listen", "Ask"):
        one = task(name)
        callback.v2_playbook_on_task_start(one, False)
        for host, said in (("worker-1", reason), ("worker-2", f"Task failed: {reason}")):
            callback.v2_runner_on_unreachable(told(one, host, msg=said, unreachable=True))
    callback.v2_runner_on_unreachable(told(one, "worker-1", msg="Host key\n\x1b[2J", unreachable=True))
    callback.v2_runner_on_unreachable(told(one, "worker-1", unreachable=True))
    assert typing.cast(Screen, callback._display).lines == [
        "\n== reachability",
        f"unreachable: [worker-1]: {reason}",
        f"unreachable: [worker-2]: {reason}",
        "unreachable: [worker-1]: Host key\n  \\x1b[2J",
        "unreachable: [worker-1]: Ansible gives no reason",
    ]


def test_failure_that_nobody_foresaw_is_shown_in_full(callback: CallbackModule, shown_by_ansible: list[str]) -> None:
    crashed = task("Look")
    callback.v2_playbook_on_task_start(crashed, False)
    callback.v2_runner_on_failed(told(crashed, "localhost", msg="MODULE FAILURE", module_stderr="Traceback"))
    assert shown_by_ansible == ["MODULE FAILURE"]


def test_a_stage_that_was_judged_again_has_a_heading_unless_it_was_not_run(callback: CallbackModule) -> None:
    show = task("Show its stages", "ansible.builtin.debug")
    callback.v2_playbook_on_task_start(show, False)
    callback._screen._heading = "== A play"
    judged = {
        "discover": ["discover: 3 pass - passed"],
        "fabric": ["fabric: 1 fail - stopped here", "[fail] fabric.rate on demo-12 mlx5_3"],
        "network": ["network: 1 skipped - not run"],
        "no stage": ["a word"],
    }
    for label, lines in judged.items():
        callback.v2_runner_item_on_ok(told(show, "localhost", msg=lines, _ansible_item_label=label))
    assert callback._display.lines == [
        "\n== discover",
        *judged["discover"],
        "\n== fabric",
        *judged["fabric"],
        *judged["network"],
        *judged["no stage"],
    ]


def test_the_end_has_what_ansible_counts_as_changed_also_where_no_line_said_so(callback: CallbackModule) -> None:
    """A task in a loop whose items are hidden, a handler, a result that Ansible counts by itself: whoever reads no line
    of it still sees the count."""
    stats = AggregateStats()
    for host, count in (("localhost", 2), ("worker-1", 1), ("worker-2", 0)):
        stats.increment("ok", host)
        for _time in range(count):
            stats.increment("changed", host)
    callback._screen.stages += [Stage("reachability", 0.0), Stage("platform", 0.0)]
    callback.v2_playbook_on_stats(stats)
    assert callback._display.lines[-1] == "  changed             3 tasks: localhost 2, worker-1 1"
    assert callback._display.lines[-2].startswith("  total ")


def test_a_stage_of_which_no_task_is_begun_is_not_in_the_table(callback: CallbackModule) -> None:
    """The tags of the run leave it out, and Ansible begins its plays all the same."""
    callback.v2_playbook_on_task_start(task("Validating arguments", "ansible.builtin.validate_argument_spec"), False)
    assert callback._screen.stages == []
    for name in ("Look", "Judge"):
        callback.v2_playbook_on_task_start(task(name), False)
    assert [stage.name for stage in callback._screen.stages] == ["reachability"]


@pytest.fixture
def shown_by_ansible(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the default callback shows of a task that failed: its message, here."""
    messages: list[str] = []
    monkeypatch.setattr(
        "ansible.plugins.callback.default.CallbackModule.v2_runner_on_failed",
        lambda _self, result, _ignore=False: messages.append(result._result["msg"]),
    )
    return messages


def failed_run(host: str = "localhost") -> AggregateStats:
    stats = AggregateStats()
    for name in ("ok", "failures"):
        stats.increment(name, host)
    return stats


def within(inner: typing.Any, **lists: typing.Any) -> typing.Any:
    """Put a task or a block into a block with these lists of tasks."""
    inner._parent = types.SimpleNamespace(**{"block": [], "rescue": [], "_parent": None, "_uuid": "outer", **lists})
    return inner


def test_the_last_line_of_a_run_without_a_verdict_is_what_stopped_it(
    callback: CallbackModule, shown_by_ansible: list[str]
) -> None:
    inner, include, rescue = task("Start observers"), task("Include"), task("Say why")
    within(within(inner, block=[inner])._parent, block=[include])._parent._uuid = "Include"
    within(inner._parent._parent, block=[include], rescue=[rescue])
    callback.v2_runner_on_failed(told(inner, "localhost", msg="the rescue goes on from this"))
    callback.v2_runner_on_failed(told(task("Look"), "worker-1", msg="ignored"), ignore_errors=True)
    callback.v2_runner_on_failed(
        told(task("Propose"), "localhost", msg="no intent can be proposed: connection refused. Correct it")
    )
    callback.v2_runner_on_failed(told(task("Let go"), "localhost", msg="what comes of it"))
    callback.v2_playbook_on_stats(failed_run())
    assert len(shown_by_ansible) == 4, "each is shown where it comes"
    assert callback._display.lines[-2:] == [
        "localhost: 1 failed",
        ("linerate.rdma: STOPPED - stage reachability: no intent can be proposed: connection refused. Correct it"),
    ]


@pytest.mark.usefixtures("shown_by_ansible")
def test_a_run_whose_failures_were_all_rescued_did_not_stop(callback: CallbackModule) -> None:
    callback.v2_runner_on_failed(told(task("Look"), "localhost", msg="a failure that Ansible took back"))
    stats = AggregateStats()
    stats.increment("ok", "localhost")
    callback.v2_playbook_on_stats(stats)
    assert not any("STOPPED" in line for line in callback._display.lines)


@pytest.mark.usefixtures("shown_by_ansible")
def test_a_verdict_stays_the_last_line(callback: CallbackModule) -> None:
    callback.v2_runner_on_failed(told(task("Look"), "localhost", msg="a failure"))
    end = task("End with the verdict", "ansible.builtin.assert")
    callback.v2_playbook_on_task_start(end, False)
    callback.v2_runner_on_failed(told(end, "localhost", msg="linerate.rdma: NOT GREEN - stage fabric: 1 fail"))
    callback.v2_playbook_on_stats(failed_run())
    assert callback._display.lines[-1] == "linerate.rdma: NOT GREEN - stage fabric: 1 fail"


def test_words_of_what_stopped_a_run() -> None:
    assert (
        describe_stop("propose", None)
        == describe_stop("propose", [" "])
        == "linerate.rdma: STOPPED - propose: see the output above"
    )
    assert describe_stop("propose", ["", "one", "two"]) == "linerate.rdma: STOPPED - propose: one; see the output above"
    refused = ["Validation of arguments failed:", "missing required arguments: linerate_rdma"]
    assert describe_stop("awx_approval", refused) == f"linerate.rdma: STOPPED - awx_approval: {' '.join(refused)}"
    assert describe_stop("awx_approval", [*refused, "x"]).endswith("arguments: linerate_rdma; see the output above")
    saved, rest = task("Save"), task("Rest")
    assert goes_on(within(saved, block=[saved], rescue=[rest])) and not goes_on(
        within(rest, block=[saved], rescue=[rest])
    )
    assert not goes_on(within(saved, block=[saved])) and not goes_on(task("Alone"))


def test_words() -> None:
    assert (
        describe_changed({"worker-1": 0}) == "  changed             0 tasks"
        and describe_changed({"worker-1": 1}) == "  changed             1 task: worker-1 1"
    )
    many = {f"worker-{number}": number for number in range(6)}
    assert (
        describe_changed(many) == "  changed             15 tasks: worker-5 5, worker-4 4, worker-3 3 and 2 more hosts"
    )
    assert format_span(42.4) == "42 s" and format_span(130) == "2 min 10 s"
    assert find_usual({"usual_seconds": 3.5, "usual_runs": 2}) == (3.5, 2)
    assert find_usual({}) is None and find_usual({"usual_seconds": 3.5, "usual_runs": 0}) is None
    assert (
        lines_of({"msg": "one\ntwo"}) == ["one", "two"]
        and lines_of({"msg": [1]}) == ["1"]
        and lines_of({"censored": "x"}) is None
    )
    assert describe_waiting("Look", ["worker-1"], 12.0, None, 0.0).strip() == "12 s  Look, waiting for worker-1"
    assert Stage("fabric", 0.0).row() == "  fabric                       -    not judged"


def test_a_stage_that_did_not_start_is_one_line_unless_it_says_why_itself() -> None:
    skipped = ["host: 1 skipped - not run", "[skipped] host.run on stage host", "    why: an earlier gate"]
    assert in_short(skipped, go=False) == skipped[:1] and in_short(skipped, go=True) == skipped
    refused = ["host: 1 fail - stopped here", "[fail] validate.intent on rdma_fabrics", "    why: wrong"]
    assert in_short(refused, go=False) == refused
    assert [choose_tone(line, "warn") for line in (*refused, "[warn] x", "host: 2 pass - passed")] == [
        "bad",
        "bad",
        "warn",
        "warn",
        "good",
    ]
    assert [
        choose_tone(line, "good") for line in (f"{refused[0]} (check mode)", skipped[0], "job: 1 fail - not passed")
    ] == [
        "bad",
        "bad",
        "bad",
    ]
    assert choose_tone(passed_over("fabric", 10), "good") == "warn"
