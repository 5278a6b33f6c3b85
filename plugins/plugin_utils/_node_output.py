# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Limit what a node sends while a task runs, and what ansible-core shows of it meanwhile: the size and the lines of an
answer, the text around its JSON, and the messages about a lost connection.
"""

from __future__ import annotations

import contextlib
import re
import typing

from ansible.errors import AnsibleAction, AnsibleConnectionFailure, AnsibleError
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import (
    BYTES_A_VALUE,
    MOST_ANSWER,
    count_values,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._bounded_ssh import bounded_ssh
from ansible_collections.linerate.rdma.plugins.plugin_utils._held_up import explain_why_not_asked, watch_node
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import (
    TEXTS,
    Unreachable,
    remove_effects,
    remove_internals,
    remove_tags,
)

#: where a line of a text begins that is not its first one
_INNER_LINE = re.compile(r"\n(?=[^\n])")
#: methods by which ansible-core shows something while it serves a node, and characters of it. Those that begin with a
#: line are ways of 2.19 and later to another process
_SHOWS = {
    **dict.fromkeys(("warning", "system_warning", "deprecated", "error"), 2000),
    **dict.fromkeys(("display", "debug", "_verbose_display", "_verbose_log"), 65536),
}
#: characters of the words about a lost connection, and of what a module printed that is no JSON
_MOST_LOSS = _MOST_JUNK = 4000
#: what ends a line for str.splitlines, and other white space
_ENDS, _BLANKS = r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", r"[^\S\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*"
_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
#: the first line that begins with JSON, and all up to the last that ends with an object
_JSON_BEGIN = re.compile(rf"(?:\A|{_ENDS})(?P<json>{_BLANKS}[{{\[])")
_JSON_END = re.compile(rf".*\}}{_BLANKS}(?:{_ENDS}|\Z)", re.DOTALL)
#: lines of an answer, and of a text in it that ansible-core divides into lines: each takes some 60 bytes more than its
#: own. A module prints one
_MOST_LINES = 32_768
#: what an answer has in it that becomes an object of ansible-core from 2.19 on: the key, or an escape of a part of it
_MAY_HAVE_TYPES = ("__ansible_type", "\\u00")


@contextlib.contextmanager
def marked_loss() -> typing.Iterator[None]:
    """Provide a context in which a lost connection of any connection plugin is raised as Unreachable, and the message
    of each other error of Ansible is shortened and escaped.

    The text that a host sends before the login has no length limit, and neither has its message about a file that it
    refuses. ansible-core shows both unchanged, together with the error that caused them.
    """
    try:
        yield
    except AnsibleConnectionFailure as error:
        raise Unreachable(words_of(error)) from None
    except AnsibleAction as error:
        made = type(error)(words_of(error), result=remove_effects(error.result))
        # before 2.19 the trace of both errors, which nothing shows that is not asked for it
        made.result.pop("exception", None)
        raise made from None
    except AnsibleError as error:
        raise AnsibleError(words_of(error)) from None


def words_of(error: Exception) -> str:
    """Return the message of an error on one line, shortened to _MOST_LOSS characters and escaped."""
    return escape.escape_line(cut_text(str(error), _MOST_LOSS))


@contextlib.contextmanager
def limit_answers(action: typing.Any, node: str, most: int = MOST_ANSWER) -> typing.Iterator[None]:
    """Provide a context in which the size of the answers that a node sends to an action is limited, and the text
    outside of a module's JSON is escaped. An answer that exceeds a limit is raised as AnsibleConnectionFailure.

    The pod connection plugin stops reading at the limit. The connection plugins of ansible-core have read the whole
    answer by then, but an answer that is too large is not decoded. A node that exceeded the timeout of an earlier task
    of the run is not queried.

    :param action: action plugin, whose connection and parser are replaced during the context
    :param node: name of the node, for messages
    :param most: maximum number of bytes for one command, stdout and stderr together
    """
    connection = action._connection
    ask, parse = connection.exec_command, action._parse_returned_data
    held_up = explain_why_not_asked(node)

    def exec_command(*words: typing.Any, **options: typing.Any) -> tuple[int, bytes, bytes]:
        if held_up:
            raise AnsibleConnectionFailure(held_up)
        answer: tuple[int, bytes, bytes] = ask(*words, **options)
        size = len(answer[1]) + len(answer[2])
        if size > most:
            raise AnsibleConnectionFailure(
                f"{node} sent a response of {size} bytes; expected at most {most}: check what its Python and its"
                " login shell print"
            )
        refuse_lines(node, *answer[1:])
        return answer

    def parsed(said: typing.Mapping[str, typing.Any], *options: typing.Any) -> typing.Any:
        output = remove_junk(said.get("stdout") or "")
        values = count_values(output)
        if values > most // BYTES_A_VALUE:
            # decoded they would take many times the memory of the text
            raise AnsibleConnectionFailure(
                f"{node} sent JSON of {values} values; expected at most {most // BYTES_A_VALUE}: check its Python"
            )
        typed = any(sign in output for sign in _MAY_HAVE_TYPES)
        try:
            found = remove_internals(parse({**said, "stdout": output}, *options))
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            if not typed:
                raise
            raise AnsibleConnectionFailure(
                f"{node} sent JSON that is not a response of a module: {words_of(error)}: check its Python"
            ) from None
        if isinstance(found, dict) and typed:
            found = remove_tags(node, found)
        if isinstance(found, dict):
            refuse_lines(node, *(found[name] for name in TEXTS if isinstance(found.get(name), str)))
        return found

    with (
        quiet_ansible(),
        watch_node(node, getattr(action, "_task", None)),
        bounded_ssh(connection, node, most),
        contextlib.ExitStack() as after,
    ):
        for owner, name, value in (
            (connection, "exec_command", exec_command),
            (connection, "most_output", most),
            (action, "_parse_returned_data", parsed),
        ):
            after.callback(setattr, owner, name, getattr(owner, name, None))
            setattr(owner, name, value)
        yield


def refuse_lines(node: str, *texts: typing.Union[str, bytes]) -> None:
    """Refuse texts of a node with more lines than any module prints. ansible-core makes a list of the lines before a
    plugin sees the answer, and the list takes twenty times the memory of the text [plugins/action/__init__.py].

    :param node: name of the node, for messages
    :raises AnsibleConnectionFailure: a text has more than _MOST_LINES lines
    """
    for text in texts:
        lines = (
            sum(map(text.count, _LINE_ENDS))
            if isinstance(text, str)
            else sum(text.count(end.encode()) for end in _LINE_ENDS)
        )
        if lines > _MOST_LINES:
            raise AnsibleConnectionFailure(
                f"{node} sent {lines} lines; expected at most {_MOST_LINES}: check what its Python and its login"
                " shell print"
            )


@contextlib.contextmanager
def quiet_ansible(indent: str = "") -> typing.Iterator[None]:
    """Provide a context in which each text that ansible-core itself shows is shortened and escaped. Before any plugin
    has seen the answer of a node, ansible-core may quote the node, such as the message of a failed ``rm``, or a key
    that it drops. Each task runs in a process of its own, so the output of other tasks is not affected.

    :param indent: text before each line of a message except the first, so that a line of the message cannot imitate a
        line of the output
    """
    display = Display()

    def wrap_display_method(show: typing.Callable[..., typing.Any], most: int) -> typing.Callable[..., typing.Any]:
        def shown(msg: typing.Any, *arguments: typing.Any, **options: typing.Any) -> typing.Any:
            return show(_INNER_LINE.sub(f"\n{indent}", _escape_message(str(msg), most)), *arguments, **options)

        return shown

    def error_as_warning(msg: typing.Optional[str], exception: BaseException, **_options: typing.Any) -> None:
        display.warning(f"{msg or 'An error'}: {type(exception).__name__}: {exception}")

    changed = {
        name: wrap_display_method(getattr(display, name), most)
        for name, most in _SHOWS.items()
        if hasattr(display, name)
    }
    if hasattr(display, "error_as_warning"):
        changed["error_as_warning"] = error_as_warning
    before = {name: vars(display)[name] for name in changed if name in vars(display)}
    vars(display).update(changed)
    try:
        yield
    finally:
        for name in changed:
            del vars(display)[name]
        vars(display).update(before)


def _escape_message(text: str, most: int) -> str:
    return escape.escape_nonprinting(cut_text(text, most), "\n\t")


@contextlib.contextmanager
def cleaning_up(action: typing.Any, node: str, most: int = MOST_ANSWER) -> typing.Iterator[None]:
    """Provide the context in which the temporary folder of a task is removed from a node. A lost connection is ignored,
    so the result of the task is kept even if the connection is lost, or the node is not queried any more.

    :param action: action plugin of the task
    :param node: name of the node, for messages
    :param most: maximum number of bytes of the answer of the node
    """
    with contextlib.suppress(AnsibleConnectionFailure), marked_loss(), limit_answers(action, node, most):
        yield


def remove_junk(output: str) -> str:
    """Return the output of a module from the line on in which its JSON begins. The text after the JSON, or the whole
    output if it contains no JSON, is shortened, and its non-printing characters are escaped.

    ansible-core drops the lines before the JSON, and warns about those after it with the text of the node. It processes
    all of them line by line, so that 16 MiB of short lines would take a gigabyte of memory [ansible-core
    module_utils/json_utils.py, _filter_non_json_lines].
    """
    begin = _JSON_BEGIN.search(output)
    end = _JSON_END.match(output) if begin else None
    start, stop = begin.start("json") if begin else 0, end.end() if end else 0
    behind = escape.escape_nonprinting(cut_text(output[max(start, stop) :], _MOST_JUNK), "\n\t")
    return output[start:stop] + behind
