# SPDX-License-Identifier: GPL-3.0-or-later

"""Convert results and errors of the collection to exit_json and fail_json of Ansible. All modules report the errors of
the collection through this code.
"""

from __future__ import annotations

import typing

from ansible.module_utils.basic import AnsibleModule

from .._model.base.errors import RdmaError
from .._model.base.load_error import LoadError

#: options of a module that works for an intent; its documentation is the fragment linerate.rdma._options.intent.
#: raw: the intent's own loader names the path of what is wrong; Ansible's conversion would hide it
INTENT_SPEC: dict[str, typing.Any] = {"fabrics": {"type": "raw", "required": True}, "cluster": {"type": "raw"}}

#: options that the action plugin of an observer takes before the module starts; see plugin_utils/_observer.py
OBSERVER_SPEC: dict[str, typing.Any] = {"facts_dir": {"type": "path"}, "run": {"type": "str"}}


#: key by which ansible-core 2.19 makes an object of a mapping in the answer of a module. A text from outside, such as
#: the definitions of a chart, could so write to the terminal
_TYPE = "__ansible_type"


def _refuse_types(result: typing.Any) -> None:
    """Refuse a result with a mapping that has the key by which Ansible marks serialized objects, because Ansible would
    create an object from it.

    :raises RdmaError: the result contains such a mapping
    """
    left = [result]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if any(isinstance(key, str) and key == _TYPE for key in value):
                raise RdmaError(
                    f"The answer has a mapping with the key {_TYPE}, of which Ansible makes an object",
                    "Use another version of the chart or source that the module read, or remove the key there",
                )
            left.extend(value.values())
        elif isinstance(value, (list, tuple)):
            left.extend(value)


def run(module: AnsibleModule, work: typing.Callable[[], dict[str, typing.Any]]) -> None:
    """Run the work of a module and end the module with its result.

    RdmaError, its subclasses and LoadError become one message, with the structured key ``failure`` beside it. Any other
    exception is a defect, and Ansible reports its traceback.

    :param work: function without arguments that returns the result of the module. ``changed`` is False unless the
        result contains it
    """
    try:
        result = work()
        _refuse_types(result)
    except LoadError as error:
        module.fail_json(
            msg=str(error),
            failure={"kind": "LoadError", "path": error.path, "seen": error.seen, "expected": error.expected},
        )
    except RdmaError as error:
        module.fail_json(msg=str(error), failure=error.describe())
    else:
        module.exit_json(**{"changed": False, **result})
