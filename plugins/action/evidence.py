# SPDX-License-Identifier: GPL-3.0-or-later

"""Packs the folder of a run, or unpacks an archive of one. Documented in the module of the same name."""

from __future__ import annotations

import os
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._again import start_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.evidence import pack, unpack
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result


class ActionModule(ControllerAction):
    """Writes no more than it is asked to: an archive, or a folder."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "state": {"type": "str", "default": "packed", "choices": ["packed", "unpacked"]},
        "report_dir": {"type": "path"},
        "archive": {"type": "path"},
    }
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {"required_if": [("state", "packed", ["report_dir"]), ("state", "unpacked", ["archive"])]}

    def work(self, options: Result, variables: Result) -> Result:
        if options["state"] == "unpacked":
            archive = os.path.abspath(options["archive"])
            folder = os.path.abspath(options["report_dir"] or archive.removesuffix(".gz").removesuffix(".tar") + ".run")
            sums = unpack(archive, folder)
            return {"archive": archive, "report_dir": folder, "run": start_of(folder).run, "files": len(sums), "left_out": []}
        folder = os.path.abspath(options["report_dir"])
        name = f"rdma-evidence-{start_of(folder).run}"
        archive = os.path.abspath(options["archive"] or os.path.join(os.path.dirname(folder), f"{name}.tar.gz"))
        sums, left_out = pack(folder, archive, name)
        return {"archive": archive, "report_dir": folder, "run": start_of(folder).run, "files": len(sums), "left_out": left_out}
