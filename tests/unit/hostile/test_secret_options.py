# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that hold secrets: each action says so of each of them, and no refusal quotes one."""

from __future__ import annotations

import importlib
import pathlib
import re
import types
import typing

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction

ACTIONS = sorted(
    path.stem for path in (pathlib.Path(__file__).resolve().parents[3] / "plugins" / "action").glob("*.py")
)
#: how options with secrets are named; what AWX wants to know for a notification holds its token
SECRET = re.compile(r"password|token|secret|api_key|private_key|notification_configuration")
HIDDEN = "s3cret-of-a-hook"


def options() -> list[tuple[str, str, typing.Any]]:
    """The secret options of all actions of the controller, as they are declared."""
    found = []
    for name in ACTIONS:
        action = importlib.import_module(f"ansible_collections.linerate.rdma.plugins.action.{name}").ActionModule
        if issubclass(action, ControllerAction):
            found += [(name, option, one) for option, one in action.SPEC.items() if SECRET.search(option)]
    return found


def test_each_secret_option_is_declared() -> None:
    names = {option for _action, option, _one in options()}
    assert {"controller_password", "controller_oauthtoken", "notification_configuration"} <= names
    assert [(action, option) for action, option, one in options() if not one.get("no_log")] == []


class Failing(ControllerAction):
    """An action that quotes its options where it fails."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "token": {"type": "str", "no_log": True},
        "hook": {"type": "dict", "no_log": True},
    }
    error: typing.ClassVar[Exception] = RdmaError("")

    def __init__(self, **arguments: typing.Any) -> None:
        self._task: typing.Any = types.SimpleNamespace(args=arguments)

    def validate_argument_spec(
        self, argument_spec: typing.Any = None, **rules: typing.Any
    ) -> tuple[typing.Any, dict[str, typing.Any]]:
        return None, self._task.args

    def work(self, options: typing.Any, variables: typing.Any) -> typing.Any:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [RdmaError(f"AWX refuses {HIDDEN}", f"Give another than {HIDDEN}"), AnsibleActionFail(f"{HIDDEN} is wrong")],
)
@pytest.mark.parametrize("arguments", [{"token": HIDDEN}, {"hook": {"headers": [{"x": HIDDEN}]}}])
def test_no_refusal_quotes_a_secret(
    error: Exception, arguments: dict[str, typing.Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(Failing, "error", error)
    found = Failing(**arguments).run()
    assert found["failed"] and found["msg"] and HIDDEN not in str(found)
