# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# What the collection uses of ansible.plugins.action: ansible-core says of itself to no type checker that it is typed.

import typing

class _Task:
    check_mode: bool
    action: str
    args: dict[str, typing.Any]
    def copy(self) -> _Task: ...

class _Found:
    resolved: bool

class _ModuleLoader:
    def find_plugin_with_context(self, name: str) -> _Found: ...

class _ActionLoader:
    def has_plugin(self, name: str) -> bool: ...
    def get(self, name: str, **of_action: typing.Any) -> ActionBase: ...

class _Loaders:
    module_loader: _ModuleLoader
    action_loader: _ActionLoader

class _Templar:
    def template(self, variable: typing.Any) -> typing.Any: ...

class ActionBase:
    _task: _Task
    _shared_loader_obj: _Loaders
    _templar: _Templar
    _connection: object
    _play_context: object
    _loader: object
    def run(self, tmp: str | None = None, task_vars: dict[str, typing.Any] | None = None) -> dict[str, typing.Any]: ...
    def cleanup(self, force: bool = ...) -> None: ...
    def _execute_module(
        self,
        module_name: str | None = None,
        module_args: dict[str, typing.Any] | None = None,
        task_vars: dict[str, typing.Any] | None = None,
    ) -> dict[str, typing.Any]: ...
    def validate_argument_spec(
        self, argument_spec: dict[str, typing.Any] | None = ..., **rules: typing.Any
    ) -> tuple[typing.Any, dict[str, typing.Any]]: ...
    def _low_level_execute_command(self, cmd: str) -> dict[str, typing.Any]: ...
