# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Marks texts that came from the cluster, a node or a pod, so that Ansible never takes them for templates.

What ansible-core marks by itself, read in the sources of 2.16.19, 2.18.19 and 2.19.14:

- 2.19 and newer: a string is a template only if something trusted it (_internal/_datatag/_tags.py, TrustedAsTemplate). Modules, actions, lookups, filters and
  inventory plugins make strings without that tag (``trusted_by_default = False`` in plugins/inventory/__init__.py). Nothing is left for us to mark.
- 2.16 and 2.18: each string is a template unless it is marked as unsafe. These cores mark
  - the result of a module or action that returned it, its facts too (executor/task_executor.py, ``result = wrap_var(result)``), and facts from the cache;
  - what a lookup returns (template/__init__.py, ``_lookup``), unless the caller says ``allow_unsafe``;
  - the message of an AnsibleError of an action or a filter (executor/task_executor.py, ``run``);
  - what comes out of a template into which an unsafe value went, so what filters make of such values (template/__init__.py, ``AnsibleContext.unsafe``).
  They do not mark
  - variables that an inventory plugin sets (inventory/data.py), nor the values that ``compose``, ``groups`` and ``keyed_groups`` see
    (plugins/inventory/__init__.py): plugins/inventory/nodes.py marks them;
  - the message of a lost connection, ``dict(unreachable=True, msg=to_text(e))``, which by ssh holds the banner of the node: ``Unreachable`` marks it. What
    ansible.builtin.ssh raises in a module of others becomes one only in the module on_node, which our roles use where they register such a result;
  - the message of an AnsibleActionFail, which ``validate_argument_spec`` raises with the value that it refuses: _controller.py makes a result of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.linerate.rdma.plugins.module_utils._model import escape
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MOST_ANSWER

try:
    from ansible.utils.unsafe_proxy import wrap_var
except ImportError:  # pragma: no cover
    # its source announces its end for 2.23, where no string is a template by itself
    def wrap_var(v: typing.Any) -> typing.Any:
        return v


Value = typing.TypeVar("Value")

#: keys whose words ansible-core shows on the terminal [plugins/callback/__init__.py, _handle_warnings, _handle_exception, _get_diff, _dump_results]
_SHOWN = frozenset({"warnings", "deprecations", "exception", "diff", "msg", "module_stdout", "module_stderr"})
#: keys by which the result of any module changes a run: variables of hosts, hosts, groups, custom statistics
#: [ansible-core plugins/strategy/__init__.py _process_pending_results, executor/task_executor.py]
_ACTED_ON = frozenset({"ansible_facts", "add_host", "add_group", "ansible_stats"})


def outside(value: Value) -> Value:
    """Mark all texts in ``value``, which may hold lists and dictionaries, keys of dictionaries included. The value stays equal to what it was."""
    return typing.cast(Value, wrap_var(value))


class Unreachable(AnsibleConnectionFailure):  # type: ignore[misc]
    """A lost connection. Its message holds words of the API server, of the kubelet or of the container."""

    def __str__(self) -> str:
        return outside(str(super().__str__()))


def without_effects(answer: typing.Mapping[str, typing.Any]) -> typing.Dict[str, typing.Any]:
    """Return what a module answered on a node without the keys that ansible-core acts on.

    The Python of a node belongs to the node. An answer with ``ansible_facts`` would set variables of the host above those of the inventory, such as the
    kubeconfig that tasks on the controller take, or the address of the node's BMC. ansible-core shows some of the words as they are, so that what does not
    print is escaped in these.
    """
    return {key: escaped(value) if key in _SHOWN else value for key, value in answer.items() if key not in _ACTED_ON}


def escaped(value: typing.Any) -> typing.Any:
    """The same with an escape for each character that does not print. A text that prints, of whatever class, is left as it is."""
    kind = type(value)
    if isinstance(value, str):
        seen = escape.visible(value, "\n\t")
        return value if seen == value else seen if kind is str else outside(seen)
    if kind in (list, tuple):
        return kind(escaped(item) for item in value)
    if kind is dict:
        return {key: escaped(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # a warning of ansible-core 2.19 and later
        return dataclasses.replace(value, **{field.name: escaped(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init})
    return value


@contextlib.contextmanager
def marked_loss() -> typing.Iterator[None]:
    """Make an Unreachable of each lost connection, whatever connection plugin it is of."""
    try:
        yield
    except AnsibleConnectionFailure as error:
        raise Unreachable(str(error)) from error


@contextlib.contextmanager
def heard(action: typing.Any, node: str, most: int = MOST_ANSWER) -> typing.Iterator[None]:
    """Bound what a node answers to an action, and escape what it says beside the JSON of a module.

    The connection plugin of pods stops at the limit. Those of ansible-core hold the whole answer by now; what is too large is not decoded at least.

    :param action: an action plugin, whose connection is asked for the time of the context
    :param most: bytes of one command, on both of its streams
    """
    connection = action._connection
    ask, parse = connection.exec_command, action._parse_returned_data

    def exec_command(*words: typing.Any, **options: typing.Any) -> typing.Tuple[int, bytes, bytes]:
        answer: typing.Tuple[int, bytes, bytes] = ask(*words, **options)
        size = len(answer[1]) + len(answer[2])
        if size > most:
            raise AnsibleConnectionFailure(f"{node} answered with {size} bytes, expected {most} at most: look at what its Python and its login shell print")
        return answer

    def parsed(said: typing.Mapping[str, typing.Any], *options: typing.Any) -> typing.Any:
        return parse({**said, "stdout": without_junk(said.get("stdout") or "")}, *options)

    with contextlib.ExitStack() as after:
        for owner, name, value in ((connection, "exec_command", exec_command), (connection, "most_output", most), (action, "_parse_returned_data", parsed)):
            after.callback(setattr, owner, name, getattr(owner, name, None))
            setattr(owner, name, value)
        yield


def without_junk(output: str) -> str:
    """Return what a module printed with an escape for what does not print behind its JSON. ansible-core warns of that with the words of the node.

    [ansible-core module_utils/json_utils.py, _filter_non_json_lines]
    """
    lines = output.splitlines(keepends=True)
    end = len(lines)
    while end and not lines[end - 1].strip().endswith("}"):
        end -= 1
    return "".join((*lines[:end], *(escape.visible(line, "\n\t") for line in lines[end:])))
