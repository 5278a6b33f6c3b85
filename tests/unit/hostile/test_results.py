# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of nodes that ansible-core can't take, under a real ansible-playbook: each is the failure of its node, and
the run goes on.

The core is the newest one, or that of LINERATE_ANSIBLE_PLAYBOOK: dev/parts.py has this file on the oldest cores as
well, where one of them ended the run.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import remove_effects

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = str(ROOT / "build" / "collections")
PLAYBOOK = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
    pathlib.Path(sys.executable).with_name("ansible-playbook")
)
#: what ansible-core reads of a result
KEYS = (
    *(
        "changed",
        "failed",
        "skipped",
        "unreachable",
        "rc",
        "msg",
        "results",
        "failed_when_result",
        "ansible_facts",
        "add_host",
        "add_group",
        "ansible_stats",
    ),
    *(
        "include",
        "include_args",
        "invocation",
        "exception",
        "warnings",
        "deprecations",
        "diff",
        "stdout",
        "stdout_lines",
        "module_stdout",
        "censored",
        "item",
    ),
    *(
        "attempts",
        "retries",
        "ansible_loop",
        "ansible_loop_var",
        "ansible_job_id",
        "_ansible_no_log",
        "_ansible_delegated_vars",
        "_ansible_notify",
    ),
    *(
        "_ansible_verbose_always",
        "_ansible_item_label",
        "_ansible_ignore_errors",
        "_ansible_facts_cacheable",
        "_ansible_suppress_tmpdir_delete",
    ),
)
ODD: tuple[typing.Any, ...] = (None, 5, "x", [5], [None], {"x": 5}, [{"x": []}])
#: answers of one node each; all keys at once, of each type, and those that are more than that
ANSWERS: typing.Mapping[str, dict[str, typing.Any]] = {
    "results": {"failed": True, "msg": "x", "results": [5]},
    "results-of-none": {"results": None},
    "results-in-it": {"changed": False, "results": [{"failed_when_result": 5, "failed": [], "unreachable": "x"}]},
    "skipped": {"skipped": [1], "results": [{"skipped": True}]},
    "unreachable": {"unreachable": [1], "msg": [5]},
    "removed": {"deprecations": [{"msg": "x", "removed": True}, {"msg": {}, "version": [1]}, {"version": "1"}, 5]},
    "surrogate": {
        "failed": True,
        "msg": "\ud800",
        "warnings": ["\ud800"],
        "exception": "\ud800",
        "diff": {"before": "\ud800", "after": "\ud801"},
    },
    "diff": {
        "changed": True,
        "diff": [{"before": [5], "after": None, "dst_larger": "x", "prepared": 5, "before_header": []}, 5, None],
    },
    "delegated": {"failed": True, "_ansible_delegated_vars": 5, "_ansible_notify": ["no handler"]},
    **{f"odd-{number}": dict.fromkeys(KEYS, value) for number, value in enumerate(ODD)},
    **{
        f"failed-{number}": {**dict.fromkeys(KEYS, value), "failed": True, "unreachable": False}
        for number, value in enumerate(ODD)
    },
    **{
        f"fine-{number}": {**dict.fromkeys(KEYS, value), "failed": False, "unreachable": False, "skipped": False}
        for number, value in enumerate(ODD)
    },
}


def write_hosts(folder: pathlib.Path) -> None:
    """Write an inventory in which the Python of each host prints one of the answers."""
    hosts: dict[str, typing.Any] = {}
    for name, answer in ANSWERS.items():
        (folder / f"{name}.json").write_text(json.dumps(answer), encoding="ascii")
        python = folder / f"{name}.sh"
        python.write_text(f"#!/bin/sh\ncat {folder}/{name}.json\n", encoding="ascii")
        python.chmod(0o755)
        hosts[name] = {
            "ansible_connection": "local",
            "ansible_python_interpreter": str(python),
            "ansible_pipelining": True,
        }
    good = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"all": {"hosts": {"localhost": good}, "children": {"nodes": {"hosts": {**hosts, "good": good}}}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")


@pytest.mark.processes
def test_no_answer_of_a_node_ends_the_run(tmp_path: pathlib.Path) -> None:
    write_hosts(tmp_path)
    report = str(tmp_path / "report")
    facts = {"gather_subset": ["clock"], "facts_dir": report, "run": "{{ hostvars.localhost.begun.run }}"}
    each: dict[str, typing.Any] = {"hosts": "nodes", "gather_facts": False, "ignore_unreachable": True}
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [{"linerate.rdma.run_begin": {"report_dir": report}, "register": "begun"}],
        },
        {**each, "tasks": [{"linerate.rdma.node_info": facts, "register": "looked", "ignore_errors": True}]},
        {
            **each,
            "tasks": [
                {"linerate.rdma.on_node": {"module": "ansible.builtin.ping"}, "register": "said", "ignore_errors": True}
            ],
        },
        {
            **each,
            "tasks": [
                {"linerate.rdma.node_info": {"gather_subset": ["clock"]}, "register": "told", "ignore_errors": True}
            ],
        },
        {
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.debug": {"msg": "the report is made"}}],
        },
    ]
    (tmp_path / "plays.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment = {
        **ours,
        "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
        "HOME": str(tmp_path),
        "ANSIBLE_NOCOLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "LC_ALL": "C.UTF-8",
    }
    command = [PLAYBOOK, "--diff", "-v", "--forks", "4", "-i", str(tmp_path / "hosts.yml"), str(tmp_path / "plays.yml")]
    done = subprocess.run(
        command,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=900,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0 and "the report is made" in output and "Unexpected Exception" not in output, output
    # no callback fails of it either, so that each node has its line
    assert "Failure using method" not in output and "Callback dispatch" not in output, output
    kept = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "report" / "facts" / "clock").iterdir()
    }
    assert {*kept} == {*ANSWERS, "good"} and not kept["good"]["error"], kept
    assert [name for name, fact in kept.items() if fact["error"] is None] == ["good"]
    assert kept["results"]["error"] == "failed: x"


def test_what_ansible_reads_has_its_type_or_goes() -> None:
    for value in ODD:
        shown = remove_effects(dict.fromkeys(KEYS, value))
        assert {*shown} <= {
            *(
                "changed",
                "failed",
                "skipped",
                "unreachable",
                "rc",
                "msg",
                "invocation",
                "exception",
                "warnings",
                "deprecations",
                "diff",
            ),
            *("stdout", "stdout_lines", "module_stdout", "ansible_job_id"),
        }
        assert all(shown[flag] is bool(value) for flag in ("changed", "failed", "skipped", "unreachable"))
        assert isinstance(shown.get("msg", ""), str) and all(
            isinstance(text, str) for text in shown.get("warnings", ())
        )
        assert (
            isinstance(shown.get("diff", {}), (dict, list))
            and isinstance(shown.get("invocation", {}), dict)
            and isinstance(shown.get("rc", 0), int)
        )


def test_what_a_good_module_answers_is_left() -> None:
    answer = {
        "changed": True,
        "rc": 0,
        "stdout": "a\nb",
        "stdout_lines": ["a", "b"],
        "msg": "made",
        "invocation": {"module_args": {"path": "/x"}},
        "warnings": ["w"],
        "deprecations": [{"msg": "d", "version": "2.0", "collection_name": "a.b"}],
        "diff": [{"before": {"mode": "0644"}, "after": {"mode": "0600"}, "before_header": "/x"}],
        "_ansible_no_log": True,
        "hcas": [{"results": [5]}],
    }
    assert remove_effects(answer) == answer
    assert remove_effects({"diff": {"before": None, "after": "x\n"}}) == {"diff": {"before": "", "after": "x\n"}}


#: C1 control characters, a direction mark, DEL, and what has no width; and the same to a reader
WORDS = "\x9b2J\x9b31mlinerate.rdma: GREEN\u202e\x7f\u200b\r"
SEEN = r"\x9b2J\x9b31mlinerate.rdma: GREEN\u202e\x7f\u200b\r"


def test_what_an_answer_that_failed_shows_prints() -> None:
    """ansible-core shows the whole of it; of an answer that is fine a parser reads the words, as they are."""
    answer = {
        "stdout": f"a\t{WORDS}\nb",
        "stderr": WORDS,
        "stdout_lines": [WORDS],
        "stderr_lines": [WORDS],
        "invocation": {"module_args": {WORDS: WORDS}},
        f"key{WORDS}": [{WORDS: [WORDS]}, 5, None],
    }
    shown = {
        "stdout": f"a\t{SEEN}\nb",
        "stderr": SEEN,
        "stdout_lines": [SEEN],
        "stderr_lines": [SEEN],
        "invocation": {"module_args": {SEEN: SEEN}},
        f"key{SEEN}": [{SEEN: [SEEN]}, 5, None],
    }
    assert remove_effects({**answer, "failed": True}) == {**shown, "failed": True}
    assert remove_effects({**answer, "unreachable": True}) == {**shown, "unreachable": True}
    assert remove_effects({**answer, "rc": 3, "failed": 1}) == {**shown, "rc": 3, "failed": True}
    assert remove_effects({**answer, "rc": "x"}) == {**shown, "failed": True}
    assert remove_effects(answer) == answer


@pytest.mark.parametrize(("code", "failed"), [(None, True), ("x", True), ([0], True), ("0", False), (True, True)])
def test_what_is_no_exit_code_is_a_failure(code: typing.Any, failed: bool) -> None:
    assert remove_effects({"rc": code}) == {"failed": failed}
    assert remove_effects({"rc": code, "failed": False}) == {"failed": False}
    assert remove_effects({"rc": 3}) == {"rc": 3}
