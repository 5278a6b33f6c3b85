# SPDX-License-Identifier: GPL-3.0-or-later

"""Exceptions that nobody foresaw, with a text from outside, in each kind of plugin under a real ansible-playbook: none
becomes a template.

ansible-core before 2.19 keeps the traceback of such an exception beside the message, and does not mark it. A template
that names the result of the task evaluates the traceback too. The core is that of test_templates.py.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import subprocess
import sysconfig
import typing

import pytest
import yaml
from ansible import constants
from ansible.errors import AnsibleActionFail, AnsibleError, AnsibleFilterError, AnsibleParserError
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.callback.stages import CallbackModule
from ansible_collections.linerate.rdma.plugins.inventory.nodes import InventoryModule
from ansible_collections.linerate.rdma.plugins.lookup import failure
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import helm
from ansible_collections.linerate.rdma.plugins.plugin_utils import _first_cause, _unforeseen
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_filter
from tests.unit.hostile.test_templates import COLLECTIONS, PLAYBOOK, ROOT, tasks

YAML = sorted({*ROOT.glob("roles/**/*.yml"), *ROOT.glob("playbooks/**/*.yml")})
PLUGINS = "ansible_collections.linerate.rdma.plugins"
#: plugins of another collection, through the doors of ours
RAISING = {
    "filter/kinds.py": """
from PLUGINS.plugin_utils._unforeseen import guard_filter
@guard_filter
def broken(value):
    return {}[value]
class FilterModule:
    def filters(self):
        return {"broken": broken}
""",
    "lookup/broken.py": """
from ansible.plugins.lookup import LookupBase
from PLUGINS.plugin_utils._unforeseen import guard_lookup
class LookupModule(LookupBase):
    @guard_lookup
    def run(self, terms, variables=None, **options):
        return [{}[term] for term in terms]
""",
    "action/controller.py": """
from PLUGINS.plugin_utils._controller import ControllerAction
class ActionModule(ControllerAction):
    SPEC = {"text": {"type": "str", "required": True}}
    def work(self, options, variables):
        return {}[options["text"]]
""",
    "action/observer.py": """
from PLUGINS.plugin_utils._observer import ObserverAction
class ActionModule(ObserverAction):
    def kinds(self, given):
        return {}[given["text"]]
""",
    "action/progress.py": """
from PLUGINS.plugin_utils._progress import ProgressAction
class ActionModule(ProgressAction):
    def _execute_module(self, **options):
        return {}[self._task.args["text"]]
""",
    "action/refused.py": """
from ansible.errors import AnsibleActionFail
from PLUGINS.plugin_utils._progress import ProgressAction
class ActionModule(ProgressAction):
    def _execute_module(self, **options):
        raise AnsibleActionFail(self._task.args["text"])
""",
    "action/other.py": """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return {}[self._task.args["text"]]
""",
}
TEXT = "{{ hostile_text }}"
FAILING: dict[str, dict[str, typing.Any]] = {
    "filter": {"ansible.builtin.set_fact": {"x": "{{ hostile_text | hostile.raising.broken }}"}},
    "condition": {"ansible.builtin.debug": {"msg": ""}, "when": "hostile_text | hostile.raising.broken"},
    "lookup": {"ansible.builtin.set_fact": {"x": "{{ lookup('hostile.raising.broken', hostile_text) }}"}},
    "controller": {"hostile.raising.controller": {"text": TEXT}},
    "observer": {"hostile.raising.observer": {"text": TEXT}},
    "progress": {"hostile.raising.progress": {"text": TEXT}},
    "refused": {"hostile.raising.refused": {"text": TEXT}},
    "on_node": {"linerate.rdma.on_node": {"module": "hostile.raising.other", "options": {"text": TEXT}}},
    # an exception of a plugin that is not ours, in a rescue of ours
    "other": {"hostile.raising.other": {"text": TEXT}},
}


def rescues() -> typing.Iterator[str]:
    """Yield each template by which a rescue of a role or a playbook says what failed."""
    for path in YAML:
        yield from re.findall(r"\{\{ lookup\('linerate\.rdma\.failure'.*?\}\}", path.read_text(encoding="utf-8"))


def run(folder: pathlib.Path, texts: typing.Mapping[str, str]) -> str:
    """Run what fails, with our rescues and with those that users may write, and return the output."""
    for name, text in RAISING.items():
        path = folder / "collections" / "ansible_collections" / "hostile" / "raising" / "plugins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("PLUGINS", PLUGINS))
    says = sorted(set(rescues()))
    steps: list[dict[str, typing.Any]] = []
    for kind, task in FAILING.items():
        keep = {"name": f"Fail in {kind}", "vars": {"hostile_text": texts[kind]}}
        ours = " ".join([*says, "failed" if kind == "other" else "{{ ansible_failed_result }}"])
        steps.append(
            {
                "block": [{**keep, **task}],
                "rescue": [
                    {"name": f"Rescue {kind}", "ansible.builtin.debug": {"msg": ours}},
                    {"name": f"Keep {kind}", "ansible.builtin.set_fact": {"kept": says[0], "all": ours}},
                    {"name": f"Show {kind}", "ansible.builtin.debug": {"msg": "{{ kept }} {{ all }}"}},
                ],
            }
        )
        if kind != "other":
            steps.append({**keep, **task, "register": "told", "ignore_errors": True})
            steps.append({"name": f"Told {kind}", "ansible.builtin.debug": {"msg": "{{ told.msg }} {{ told }}"}})
    plays = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": steps}]
    (folder / "plays.yml").write_text(yaml.dump(plays, Dumper=Tagged))
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        f"import sys\nsys.path.append({sysconfig.get_paths()['purelib']!r})\n"
    )
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": f"{folder}/collections:{COLLECTIONS}",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "PYTHONPATH": str(folder / "site"),
        "HOME": str(folder),
    }
    done = subprocess.run(
        [PLAYBOOK, "plays.yml"], env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return f"{done.stdout}{done.stderr}"


class Unsafe(str):
    """A text that Ansible does not take for a template, as a marked answer of a module."""


class Tagged(yaml.SafeDumper):
    """Writes such texts."""


Tagged.add_representer(Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


@pytest.mark.processes
def test_no_text_of_an_exception_is_a_template(tmp_path: pathlib.Path) -> None:
    texts = {kind: Unsafe(f"{{{{ lookup('pipe', 'touch {tmp_path}/MARK-{kind}') }}}}") for kind in FAILING}
    output = run(tmp_path, texts)
    assert sorted(path.name for path in tmp_path.glob("MARK-*")) == [], output
    for kind in FAILING:
        assert f"Rescue {kind}" in output and f"Fail in {kind}: " in output, output
    # each is told by its class and its place
    assert output.count("KeyError in ") >= 3 * (len(FAILING) - 2), output
    assert "MARK-controller" not in output and "MARK-filter" not in output, output


def test_there_are_rescues() -> None:
    assert len(list(rescues())) >= 11


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_template_names_a_failed_result(path: pathlib.Path) -> None:
    """It would be evaluated as a whole; the lookup ``failure`` reads it as it is."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"ansible_failed_(result|task)", text), "take the lookup linerate.rdma.failure"
    assert not re.search(r"\|\s*(ansible\.builtin\.)?from_(yaml|json)", text), (
        "core's reader raises what is in the text: read it by a plugin of the collection"
    )


def plugins(kind: str) -> list[str]:
    return sorted(path.stem for path in (ROOT / "plugins" / kind).glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", plugins("action"))
def test_each_action_has_the_last_door(name: str) -> None:
    assert importlib.import_module(f"{PLUGINS}.action.{name}").ActionModule.run.is_guarded


@pytest.mark.parametrize("name", plugins("lookup"))
def test_so_has_each_lookup(name: str) -> None:
    assert importlib.import_module(f"{PLUGINS}.lookup.{name}").LookupModule.run.is_guarded


@pytest.mark.parametrize("name", plugins("filter"))
def test_so_has_each_filter(name: str) -> None:
    for work in importlib.import_module(f"{PLUGINS}.filter.{name}").FilterModule().filters().values():
        assert work.is_guarded


def test_so_has_the_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    methods = [name for name in dir(CallbackModule) if name.startswith("v2_") and name in vars(CallbackModule)]
    assert {"v2_runner_on_ok", "v2_runner_on_failed", "v2_playbook_on_stats"} <= set(methods)
    assert all(getattr(CallbackModule, name).is_guarded for name in methods)
    monkeypatch.setattr(Display(), "warning", said.append)
    CallbackModule().v2_runner_on_ok(object())
    assert len(said) == 1 and said[0].startswith("linerate.rdma.stages: AttributeError in ")


def test_an_inventory_that_breaks_says_where_and_not_what(monkeypatch: pytest.MonkeyPatch) -> None:
    causes: list[_first_cause.FirstCause] = []
    monkeypatch.setattr(constants.config, "get_config_value", "INVENTORY_UNPARSED_IS_FAILED".__eq__)
    monkeypatch.setattr(_first_cause, "_causes", causes)

    def parse(_self: InventoryModule, _path: str) -> None:
        raise KeyError("{{ evil }}")

    monkeypatch.setattr(InventoryModule, "_parse", parse)
    monkeypatch.setattr("ansible.plugins.inventory.BaseInventoryPlugin.parse", lambda *_arguments, **_options: None)
    with pytest.raises(AnsibleParserError) as error:
        InventoryModule().parse(None, None, "x.linerate.rdma.yml")
    assert "evil" not in str(error.value) and "KeyError in test_unforeseen.py" in str(error.value)
    assert error.value.__suppress_context__ and causes == [(error.value.message, "", "")]


def test_a_filter_keeps_what_it_says_on_purpose() -> None:
    @guard_filter
    def refusing(_value: typing.Any) -> None:
        raise RdmaError("no fabric has the name 'x'", "Name one")

    @guard_filter
    def passing(_value: typing.Any) -> None:
        raise AnsibleError("of Ansible")

    with pytest.raises(AnsibleFilterError, match="linerate\\.rdma\\.refusing: no fabric has the name 'x'\\. Name one"):
        refusing(1)
    with pytest.raises(AnsibleError, match="of Ansible") as error:
        passing(1)
    assert not isinstance(error.value, AnsibleFilterError)


def test_of_a_file_the_words_of_the_system_are_kept() -> None:
    said = _unforeseen.describe_error(PermissionError(13, "evil {{ }}", "/srv/\x1b[2J" + "a" * 9000), "x")
    assert said.startswith("x: PermissionError (Permission denied: '/srv/") and "evil" not in said
    assert "\x1b" not in said and len(said) < 500
    assert "evil" not in _unforeseen.describe_error(OSError("evil"), "x")


def test_a_refused_option_has_no_traceback_that_is_not_marked() -> None:
    class Refusing:
        @_unforeseen.guard_action
        def run(self) -> None:
            raise AnsibleActionFail("evil", result={"list": ["evil"]})

    with pytest.raises(AnsibleActionFail) as error:
        Refusing().run()
    assert error.value.result["list"] == ["evil"]


class Lookup(failure.LookupModule):
    """The lookup with options that no loader of plugins knows."""

    def set_options(self, *, direct: typing.Any = None) -> None:
        self.direct = direct

    def get_option(self, option: str) -> typing.Any:
        return self.direct.get(option, "no message, see the output above")


def lookup(terms: list[str], variables: typing.Mapping[str, typing.Any], **options: str) -> str:
    (text,) = Lookup().run(terms, variables, **options)
    return str(text)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"msg": "m"}, "T: m"),
        ({"reason": "r"}, "T: r"),
        ({"msg": ["a", 1]}, 'T: ["a", 1]'),
        ({"msg": "non-zero return code", "stderr": " no such unit\n"}, "T: no such unit"),
        ({"msg": "m", "stderr": "s"}, "T: m"),
        ({"msg": "a\x1b[2J\nb\u202e"}, "T: a\\x1b[2J\nb\\u202e"),
        ({"exception": "{{ evil }}"}, "T: no message, see the output above"),
        (None, "T: no message, see the output above"),
    ],
)
def test_what_a_rescue_says(result: typing.Any, expected: str) -> None:
    assert lookup(["role"], {"ansible_failed_task": {"name": "T"}, "ansible_failed_result": result}) == expected


def test_what_a_rescue_says_without_a_task() -> None:
    assert lookup(["its role"], {}, unsaid="could not be loaded") == "its role: could not be loaded"
    assert lookup([], {"ansible_failed_result": {"msg": "m"}}) == "m"
    long = lookup(["x"], {"ansible_failed_result": {"msg": "a" * 10**6}})
    assert len(long) < 10_000


def test_each_rescue_that_keeps_a_cause_takes_the_lookup() -> None:
    """A rescue says why, so that the judgement can."""
    for path in YAML:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = [item for item in content or () if isinstance(item, dict)] if isinstance(content, list) else []
        for task in tasks([item for item in found if "hosts" not in item]):
            for step in tasks(task.get("rescue", ())):
                assert "error" not in str(step.get("linerate.rdma.fact")) or "failure" in str(step)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: x\nversion: 26.4.1\n", "26.4.1"),
        ("version: v1.6.0-build.1+abc\n", "v1.6.0-build.1+abc"),
        ("version: \"{{ lookup('pipe', 'id') }}\"\n", None),
        ("version: 26.4\n", None),
        ("version: [1]\n", None),
        ("- version: 1.0.0\n", None),
        ("a: 1\n---\nversion: 1.0.0\n", None),
        ("", None),
        ("\x00", None),
    ],
)
def test_the_version_of_a_chart_in_a_folder(tmp_path: pathlib.Path, text: str, expected: typing.Optional[str]) -> None:
    path = tmp_path / "Chart.yaml"
    path.write_text(text)
    if expected is not None:
        assert helm.version_in(str(path)) == expected
        return
    with pytest.raises(RdmaError) as error:
        helm.version_in(str(path))
    assert "operators_charts" in str(error.value)


def test_a_chart_that_is_no_file_or_too_large_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "Chart.yaml"
    os.mkfifo(path)
    with pytest.raises(RdmaError, match="expected a regular file"):
        helm.version_in(str(path))
    path.unlink()
    path.write_bytes(b"a" * (2 << 20))
    with pytest.raises(RdmaError, match="the limit is"):
        helm.version_in(str(path))
