# SPDX-License-Identifier: GPL-3.0-or-later

"""What ansible-core itself shows of a node's words, before a plugin of the collection has seen the answer.

The core is that of test_templates.py.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import types
import typing

import pytest
import yaml
from ansible.errors import AnsibleConnectionFailure
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.callback import stages
from ansible_collections.linerate.rdma.plugins.plugin_utils import _node_output
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import cleaning_up, quiet_ansible
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import remove_internals
from tests.unit.hostile.test_templates import COLLECTIONS, PLAYBOOK

EVIL = "\x1b[2J\x1b[1;1Hlinerate.rdma: GREEN \u202e\x07"
#: the Python of a node, which answers with a key of ansible-core
PYTHON = r"""#!/bin/sh
words='\u001b[2J\u001b[1;1Hlinerate.rdma: GREEN \u202e'
printf '{"_ansible_x": "%s", "add_host": {"a": "%s"}, "changed": false}' "$words" "$words"
"""
#: its login shell, which can't remove a folder
SHELL = """#!/bin/sh
case "$*" in *"rm -f -r"*) printf '\\033[2J\\033[1;1Hlinerate.rdma: GREEN' >&2; exit 1 ;; esac
exec /bin/sh "$@"
"""


@pytest.mark.processes
def test_neither_a_key_of_core_nor_an_rm_that_fails_drives_the_terminal(tmp_path: pathlib.Path) -> None:
    for name, text in (("python", PYTHON), ("shell", SHELL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    node = {"ansible_connection": "local"}
    hosts = {
        "worker-1": {**node, "ansible_pipelining": True, "ansible_python_interpreter": f"{tmp_path}/python"},
        "worker-2": {**node, "ansible_pipelining": False, "ansible_python_interpreter": sys.executable},
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    copy = {"module": "ansible.builtin.copy", "options": {"content": "a", "dest": f"{tmp_path}/made"}}
    looks: list[typing.Any] = [
        {"linerate.rdma.on_node": {"module": "ansible.builtin.ping"}, "when": "inventory_hostname == 'worker-1'"},
        {"linerate.rdma.node_info": {"gather_subset": ["platform"]}, "when": "inventory_hostname == 'worker-1'"},
        {"linerate.rdma.on_node": copy, "when": "inventory_hostname == 'worker-2'"},
        {"linerate.rdma.node_info": {"gather_subset": ["clock"]}, "when": "inventory_hostname == 'worker-2'"},
    ]
    (tmp_path / "plays.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": looks}]))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
        "ANSIBLE_EXECUTABLE": f"{tmp_path}/shell",
        "ANSIBLE_NOCOLOR": "1",
        "HOME": str(tmp_path),
    }
    command = [PLAYBOOK, "-i", "hosts.yml", "plays.yml"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    shown = f"{done.stdout}{done.stderr}"
    assert done.returncode == 0, shown
    assert "\x1b" not in shown and "\u202e" not in shown, repr(shown)
    # the rm that failed is told, escaped; the keys are not
    assert "\\x1b[2J" in shown and "Removed unexpected internal key" not in shown, shown


@pytest.mark.parametrize("way", ["warning", "system_warning", "deprecated", "error", "display"])
def test_each_way_to_the_terminal_is_cut_and_escaped(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    display, said = Display(), []
    monkeypatch.setattr(display, way, lambda msg, *_arguments, **_options: said.append(msg))
    with quiet_ansible():
        getattr(display, way)(EVIL + "a" * 10**6)
        getattr(display, way)(msg="a\n\tb")
    getattr(display, way)(EVIL)
    assert len(said[0]) < 70_000 and "\x1b" not in said[0] and "\u202e" not in said[0] and "GREEN" in said[0]
    assert said[1] == "a\n\tb"
    # what others say is left as it is
    assert said[2] == EVIL


def test_an_error_that_becomes_a_warning_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    display, said = Display(), []
    monkeypatch.setattr(display, "warning", lambda msg, **_options: said.append(msg))
    with quiet_ansible():
        if hasattr(display, "error_as_warning"):
            display.error_as_warning("Discovery", ValueError(EVIL), help_text="")
            assert said and "\x1b" not in said[0] and said[0].startswith("Discovery: ValueError: ")
    assert "error_as_warning" not in vars(display)


def test_display_is_as_it_was_also_after_an_error() -> None:
    before = dict(vars(Display()))
    with pytest.raises(ValueError, match="x"), quiet_ansible(), quiet_ansible():
        raise ValueError("x")
    assert vars(Display()) == before


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (
            {"_ansible_parsed": True, "_ansible_x": EVIL, "_ansible_no_log": True, "a": 1},
            {"_ansible_parsed": True, "a": 1},
        ),
        ({"add_host": {}, "add_group": EVIL, "a": {"_ansible_x": 1}}, {"a": {"_ansible_x": 1}}),
        ({"ansible_facts": {"b": 1}}, {"ansible_facts": {"b": 1}}),
        ({"ansible_facts": EVIL}, {}),
        ({"ansible_facts": None}, {}),
        ([1], [1]),
    ],
)
def test_no_answer_has_a_key_of_core(answer: typing.Any, kept: typing.Any) -> None:
    assert remove_internals(answer) == kept


def test_a_connection_that_is_lost_at_the_end_leaves_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_node_output, "explain_why_not_asked", lambda _node: "")
    connection = types.SimpleNamespace(exec_command=lambda *_arguments: (0, b"", b""))
    action = types.SimpleNamespace(_connection=connection, _parse_returned_data=None, _task=None)
    with cleaning_up(action, "worker-1"):
        raise AnsibleConnectionFailure(EVIL)
    with pytest.raises(KeyError), cleaning_up(action, "worker-1"):
        raise KeyError("of our own")


#: a module on the controller, which quotes a chart
QUOTES = """
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"way": {"type": "str"}})
words = "Helm said: \\x1b[2J\\x1b[1;1H\\u202e\\nlinerate.rdma: GREEN - all gates open"
if module.params["way"] == "warn":
    module.warn(words)
    module.deprecate(words, version="99.0", collection_name="linerate.rdma")
    module.exit_json(changed=True)
if module.params["way"] == "raise":
    raise ValueError(words)
module.fail_json(msg=words, exception=f"Traceback: {words}")
"""


@pytest.mark.processes
def test_a_module_of_the_controller_does_not_drive_the_terminal(tmp_path: pathlib.Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "quote.py").write_text(QUOTES)
    tasks = [{"quote": {"way": way}, "ignore_errors": True} for way in ("warn", "raise", "fail")]
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
    (tmp_path / "plays.yml").write_text(yaml.safe_dump([play]))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
        "ANSIBLE_STDOUT_CALLBACK": "linerate.rdma.stages",
        "ANSIBLE_NOCOLOR": "1",
        "HOME": str(tmp_path),
    }
    command = [PLAYBOOK, "-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}", "plays.yml"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    shown = f"{done.stdout}{done.stderr}"
    assert done.returncode == 0 and "Helm said" in shown, shown
    assert "\x1b" not in shown and "\u202e" not in shown, repr(shown)


def test_a_later_line_of_a_text_is_indented_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    display, said = Display(), []
    monkeypatch.setattr(display, "display", lambda msg, *_arguments, **_options: said.append(msg))
    with quiet_ansible("  "):
        display.display("a\nlinerate.rdma: GREEN\n\nb\n")
    assert said == ["a\n  linerate.rdma: GREEN\n\n  b\n"]


@pytest.mark.parametrize("way", ["_handle_exception", "_handle_warnings"])
def test_no_line_of_an_error_passes_for_the_verdict_of_a_play_of_ours(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    display, said = Display(), []
    monkeypatch.setattr(display, "display", lambda msg, *_arguments, **_options: said.append(msg))
    callback = stages.CallbackModule()
    monkeypatch.setattr(
        type(callback).__mro__[1], way, lambda *_arguments, **_options: display.display(f"a\n{EVIL}"), raising=False
    )
    for ours in (True, False):
        monkeypatch.setattr(callback, "_ours", ours)
        getattr(callback, way)({})
    assert [text.splitlines()[1].startswith("  ") for text in said] == [True, False]
    assert "\x1b" not in "".join(said)
