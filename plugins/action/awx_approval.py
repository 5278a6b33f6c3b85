# SPDX-License-Identifier: GPL-3.0-or-later

"""Put the text of a plan into the approval of an AWX workflow. The options are documented in the module of the same
name.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.awx import AwxWanted
from ansible_collections.linerate.rdma.plugins.module_utils._render.awx.awx import render_approval
from ansible_collections.linerate.rdma.plugins.plugin_utils._awx import AWX_SPEC, Awx
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that writes the text of a plan into the template of an AWX approval. AWX copies the template
    when the workflow reaches the approval, so this action must run after the plan is computed and before the
    approval.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {**AWX_SPEC, "text": {"type": "str", "required": True}}

    def work(self, options: Result, variables: Result) -> Result:
        wanted = AwxWanted(
            name=options["name"], organization=options["organization"], approval_seconds=options["approval_seconds"]
        )
        return {
            "changed": Awx(self, options, variables).bring(render_approval(wanted, options["text"])),
            "text": options["text"],
        }
