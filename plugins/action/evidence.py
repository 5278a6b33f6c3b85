# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack the folder of a run into an evidence archive, or unpack such an archive. The options are documented in the
module of the same name.
"""

from __future__ import annotations

import os
import typing

from ansible.release import __version__ as ansible_version

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import sign_sheet, start_of, write_pages
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.plugins.module_utils._store.unpacking import unpack
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that packs a run folder into an evidence archive and writes a signature sheet beside the
    archive, or that unpacks such an archive into a folder.
    """

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
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "required_if": [("state", "packed", ["report_dir"]), ("state", "unpacked", ["archive"])]
    }

    def work(self, options: Result, variables: Result) -> Result:
        return self._unpack_archive(options) if options["state"] == "unpacked" else self._pack_folder(options)

    @staticmethod
    def _unpack_archive(options: Result) -> Result:
        archive = os.path.abspath(options["archive"])
        folder = os.path.abspath(options["report_dir"] or f"{_strip_archive_suffix(archive)}.run")
        found = unpack(archive, folder, lambda fresh: write_pages(fresh, ansible_version), options["sha256"] or "")
        return {
            "archive": archive,
            "report_dir": folder,
            "run": start_of(folder).run,
            "files": len(found.sums),
            "left_out": [],
            "sha256": found.sha256,
        }

    @staticmethod
    def _pack_folder(options: Result) -> Result:
        folder = os.path.abspath(options["report_dir"])
        run = start_of(folder).run
        name = f"rdma-evidence-{run}"
        archive = os.path.abspath(options["archive"] or os.path.join(os.path.dirname(folder), f"{name}.tar.gz"))
        found, sheet = pack(folder, archive, name, replaces=False), f"{_strip_archive_suffix(archive)}.signature.html"
        sign_sheet(folder, sheet, os.path.basename(archive), found.sha256, options["signature"] or {})
        told = {"files": len(found.sums), "left_out": found.left_out, "sha256": found.sha256}
        return {"archive": archive, "report_dir": folder, "run": run, **told, "signature": sheet}


def _strip_archive_suffix(archive: str) -> str:
    return archive.removesuffix(".gz").removesuffix(".tar")
