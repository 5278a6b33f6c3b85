# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# What the connection plugin and the benchmarks use of ansible.plugins.connection.

import typing

class _PlayContext:
    remote_addr: str

class _Become:
    def expect_prompt(self) -> bool: ...

class ConnectionBase:
    become: _Become | None
    def get_option(self, name: str) -> typing.Any: ...
    _connected: bool
    _play_context: _PlayContext
    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]: ...
    def put_file(self, in_path: str, out_path: str) -> None: ...
    def fetch_file(self, in_path: str, out_path: str) -> None: ...
    def close(self) -> None: ...
    def _connect(self) -> typing.Any: ...
