# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: refused
short_description: Refuse to connect to a node, with the cause
version_added: "1.0.0"
author: The linerate.rdma authors (@linerate)
description:
  - The inventory plugin P(linerate.rdma.nodes#inventory) gives this connection to a node that Ansible would reach by
    ssh, but whose address is not valid. The node stays in its groups, each of its tasks is unreachable with the cause,
    and no other machine is reached in its place.
options:
  cause:
    description: Why Ansible does not connect to the node.
    type: str
    default: The inventory does not say why
    vars:
      - name: ansible_refused_cause
"""

EXAMPLES = r"""
all:
  hosts:
    worker-1:
      ansible_connection: linerate.rdma.refused
      ansible_refused_cause: "Node worker-1: its InternalIP is not an IP address"
"""

import typing

from ansible.plugins.connection import ConnectionBase

from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import Unreachable


class Connection(ConnectionBase):
    """A connection that refuses every request, with the cause that the inventory has set."""

    transport = "linerate.rdma.refused"
    has_pipelining = True

    def _connect(self) -> Connection:
        """Refuse to connect to a node. The error names the cause that the inventory has set.

        :raises Unreachable: always
        """
        raise Unreachable(
            f"{self.get_option('cause')}. Ansible does not connect to it. Examine the node: kubectl get node -o yaml"
        )

    def exec_command(
        self, cmd: str, in_data: typing.Optional[bytes] = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Refuse to run a command on the node.

        :raises Unreachable: always
        """
        self._connect()
        return 255, b"", b""

    def put_file(self, in_path: str, out_path: str) -> None:
        """Refuse to copy a file to the node.

        :raises Unreachable: always
        """
        self._connect()

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Refuse to copy a file from the node.

        :raises Unreachable: always
        """
        self._connect()

    def close(self) -> None:
        """Do nothing, since no connection is ever open."""
