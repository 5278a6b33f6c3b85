# SPDX-License-Identifier: GPL-3.0-or-later

"""A connection that reaches no host: each module that comes through it is answered from a file of the host. Needs
pipelining; nothing else is answered."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import re
import time
import typing

from ansible.errors import AnsibleError
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: replay
short_description: Answers modules from files
description: For benchmarks. The folder is the environment variable REPLAY_FOLDER.
author: The linerate.rdma authors (@linerate)
extends_documentation_fragment: connection_pipelining
"""

_MODULE = re.compile(rb"^module_fqn='[\w.]*\.(\w+)',$", re.MULTILINE)
_PARAMS = re.compile(rb"^params=(.*),$", re.MULTILINE)


class Connection(ConnectionBase):
    """What a module prints, without the module."""

    transport = "replay"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(
        self, cmd: str, in_data: typing.Optional[bytes] = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        found = [pattern.search(in_data or b"") for pattern in (_MODULE, _PARAMS)]
        if not found[0] or not found[1]:
            raise AnsibleError(f"only modules through a pipeline are answered, and this is: {cmd}")
        module = found[0][1].decode()
        if module == "ibping":
            arguments = json.loads(ast.literal_eval(found[1][1].decode()))["ANSIBLE_MODULE_ARGS"]
            return 0, json.dumps({"changed": False, **_ibping(arguments)}).encode(), b""
        path = pathlib.Path(os.environ["REPLAY_FOLDER"], module, f"{self._play_context.remote_addr}.json")
        return 0, path.read_bytes().replace(b'"@now@"', str(time.time()).encode()), b""

    def put_file(self, in_path: str, out_path: str) -> None:
        raise AnsibleError(f"no file is taken: {out_path}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        raise AnsibleError(f"no file is given: {in_path}")

    def close(self) -> None:
        self._connected = False


def _ibping(arguments: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Every server starts, and every destination answers all that it is asked."""
    if arguments["mode"] == "ping":
        return {
            "pings": [
                {
                    "rdma_device": client["device"],
                    "port": client["port"],
                    "destination_lid": lid,
                    "transmitted": arguments["count"],
                    "received": arguments["count"],
                    "resent": 0,
                    "error": None,
                }
                for client in arguments["clients"]
                for lid in client["lids"]
            ]
        }
    return {
        "servers": [
            {"rdma_device": server["device"], "port": server["port"], "error": None}
            for server in arguments.get("servers", ())
        ]
    }
