# SPDX-License-Identifier: GPL-3.0-or-later

"""The seam to Ansible: the only place that turns an error of the collection into fail_json, and a result into
exit_json."""

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


def run(module: AnsibleModule, work: typing.Callable[[], dict[str, typing.Any]]) -> None:
    """Do the work of a module and end it.

    The errors that the collection raises on purpose (RdmaError and its kin, LoadError) become one message with a
    structured ``failure`` beside it. Any other exception is a defect and is left to Ansible's own traceback.

    :param work: returns the module's result; ``changed`` is false unless it says otherwise
    """
    try:
        result = work()
    except LoadError as error:
        module.fail_json(
            msg=str(error),
            failure={"kind": "LoadError", "path": error.path, "seen": error.seen, "expected": error.expected},
        )
    except RdmaError as error:
        module.fail_json(msg=str(error), failure=error.describe())
    else:
        module.exit_json(**{"changed": False, **result})
