# SPDX-License-Identifier: GPL-3.0-or-later

"""Packs the folder of a run, or unpacks an archive of one. Documented in the module of the same name."""

from __future__ import annotations

import os
import typing

from ansible.release import __version__ as ansible_version

from ansible_collections.linerate.rdma.plugins.module_utils._again import pages, sign, start_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.evidence import checksum, pack, unpack, verify
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result


class ActionModule(ControllerAction):
    """Writes no more than it is asked to: an archive and its sheet, or a folder."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "state": {"type": "str", "default": "packed", "choices": ["packed", "unpacked"]},
        "report_dir": {"type": "path"},
        "archive": {"type": "path"},
        "sha256": {"type": "str"},
        "signature": {
            "type": "dict",
            "options": {name: {"type": "str", "default": ""} for name in ("customer", "cluster", "contractor")},
        },
    }
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {"required_if": [("state", "packed", ["report_dir"]), ("state", "unpacked", ["archive"])]}

    def work(self, options: Result, variables: Result) -> Result:
        return self._unpacked(options) if options["state"] == "unpacked" else self._packed(options)

    @staticmethod
    def _unpacked(options: Result) -> Result:
        archive = os.path.abspath(options["archive"])
        if options["sha256"]:
            verify(archive, options["sha256"])
        folder = os.path.abspath(options["report_dir"] or f"{_stem(archive)}.run")
        sums = unpack(archive, folder, lambda fresh: pages(fresh, ansible_version))
        return {"archive": archive, "report_dir": folder, "run": start_of(folder).run, "files": len(sums), "left_out": [], "sha256": checksum(archive)}

    @staticmethod
    def _packed(options: Result) -> Result:
        folder = os.path.abspath(options["report_dir"])
        run = start_of(folder).run
        name = f"rdma-evidence-{run}"
        archive = os.path.abspath(options["archive"] or os.path.join(os.path.dirname(folder), f"{name}.tar.gz"))
        sums, left_out = pack(folder, archive, name)
        digest, sheet = checksum(archive), f"{_stem(archive)}.signature.html"
        sign(folder, sheet, os.path.basename(archive), digest, options["signature"] or {})
        return {"archive": archive, "report_dir": folder, "run": run, "files": len(sums), "left_out": left_out, "sha256": digest, "signature": sheet}


def _stem(archive: str) -> str:
    return archive.removesuffix(".gz").removesuffix(".tar")
