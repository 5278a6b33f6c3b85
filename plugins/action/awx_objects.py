# SPDX-License-Identifier: GPL-3.0-or-later

"""Create the collection's objects in AWX, or remove them. The options are documented in the module of the same name."""

from __future__ import annotations

import dataclasses
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.awx import AwxWanted
from ansible_collections.linerate.rdma.plugins.module_utils._render.awx.awx import render_objects, render_removals
from ansible_collections.linerate.rdma.plugins.plugin_utils._awx import AWX_SPEC, Awx
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result

_NAMES = {field.name for field in dataclasses.fields(AwxWanted)}
_NEEDED = ("site_url", "image", "cluster_credential")


class ActionModule(ControllerAction):
    """An action plugin that runs the modules of the AWX collection in sequence. Their arguments contain braces that AWX
    expands, so Ansible must not evaluate them as templates.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **AWX_SPEC,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "site_url": {"type": "str", "default": ""},
        "site_branch": {"type": "str", "default": ""},
        "inventory_file": {"type": "str", "default": "linerate.rdma.yml"},
        "scm_credential": {"type": "str", "default": ""},
        "playbooks_url": {"type": "str", "default": ""},
        "playbooks_branch": {"type": "str", "default": ""},
        "image": {"type": "str", "default": ""},
        "image_credential": {"type": "str", "default": ""},
        "cluster_credential": {"type": "str", "default": ""},
        "credentials": {"type": "list", "elements": "str", "default": []},
        "controller_credential": {"type": "str", "default": ""},
        "schedule": {"type": "str", "default": ""},
        "notification_type": {"type": "str", "default": ""},
        "notification_configuration": {"type": "dict", "default": {}, "no_log": True},
        "extra_vars": {"type": "dict", "default": {}},
        "instance_groups": {"type": "list", "elements": "str", "default": []},
        "forks": {"type": "int", "default": 0},
        "wait": {"type": "bool", "default": True},
    }

    def work(self, options: Result, variables: Result) -> Result:
        given: Result = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in options.items()
            if name in _NAMES
        }
        wanted = AwxWanted(**given)
        lacking = [name for name in _NEEDED if not options[name]] if options["state"] == "present" else []
        if lacking:
            raise RdmaError(
                f"{', '.join(lacking)}: not set",
                f"Set {', '.join(f'awx_{name}' for name in lacking)}; see docs/awx.md",
            )
        awx = Awx(self, options, variables)
        changed = [
            one
            for one in (render_objects if options["state"] == "present" else render_removals)(wanted)
            if awx.bring(one)
        ]
        return {"changed": bool(changed), "objects": [{"kind": one.kind, "name": one.name} for one in changed]}
