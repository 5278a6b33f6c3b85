# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Wrap the entry point of each plugin, so that an unexpected exception becomes an error of Ansible without the text of
the exception.

The author of the data that the plugin read may have chosen that text. ansible-core before 2.19 stores the traceback as
``exception`` beside ``msg``, and marks only ``msg`` as unsafe [executor/task_executor.py, ``run``]. The traceback is
then a template, and naming any part of the result evaluates all of it.
"""

from __future__ import annotations

import functools
import os
import traceback
import typing

from ansible.errors import AnsibleAction, AnsibleConnectionFailure, AnsibleError, AnsibleFilterError, AnsibleLookupError
from ansible.utils.display import Display
from jinja2.exceptions import UndefinedError

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import words_of
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import Unreachable, mark_outside

Run = typing.TypeVar("Run", bound=typing.Callable[..., typing.Any])
Class = typing.TypeVar("Class", bound=type)

#: characters of the name of a file
_MOST_NAME = 200


def describe_error(error: Exception, where: str) -> str:
    """Return a message for an unexpected exception: its class, the file and line that raised it, and a remedy. The text
    of the exception is left out. Only for an error of the operating system, its meaning and its file are included. With
    -vvv the traceback is displayed as source lines, without values.

    :param where: name of the plugin, with which the message begins
    """
    trace = error.__traceback__
    Display().vvv(f"{where}: {type(error).__name__}\n" + escape.escape_nonprinting("".join(traceback.format_tb(trace))))
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = (
        f" in {trace.tb_frame.f_code.co_filename.rpartition('/')[2]}, line {trace.tb_lineno}"
        if trace is not None
        else ""
    )
    seen = ""
    if isinstance(error, OSError) and isinstance(error.errno, int):
        of_file = f": {cut_text(str(error.filename), _MOST_NAME)!r}" if error.filename is not None else ""
        seen = f" ({os.strerror(error.errno)}{of_file})"
    return escape.escape_line(
        f"{where}: {type(error).__name__}{seen}{place}, an unexpected error. Report this as a defect of"
        " linerate.rdma, with the output of -vvv"
    )


def plugin_name(of: type) -> str:
    """Return the fully qualified name of a plugin, such as ``linerate.rdma.judge``.

    :param of: class of the plugin, whose module determines the name
    """
    return f"linerate.rdma.{of.__module__.rpartition('.')[2]}"


def guard_action(run: Run) -> Run:
    """Wrap ``run`` of an action plugin, as a decorator. An unexpected exception becomes a failed result. Errors of
    Ansible are raised again. Where ansible-core does not mark their message or their result as unsafe, the wrapper
    does.
    """

    @functools.wraps(run)
    def guarded(self: typing.Any, *arguments: typing.Any, **options: typing.Any) -> typing.Any:
        try:
            return run(self, *arguments, **options)
        except AnsibleConnectionFailure as error:
            # before 2.19 neither its message nor the result of an AnsibleAction is marked
            raise Unreachable(words_of(error)) from None
        except AnsibleAction as error:
            error.result.update({key: mark_outside(value) for key, value in error.result.items()})
            raise
        except AnsibleError:
            raise
        except Exception as error:
            return {"changed": False, "failed": True, "msg": describe_error(error, plugin_name(type(self)))}

    return typing.cast(Run, _mark_guarded(guarded))


def guard_filter(work: Run) -> Run:
    """Wrap the function of a filter, as a decorator. Each exception becomes an AnsibleFilterError, except errors of
    Ansible and undefined variables, which are raised again.
    """
    return _guard_with_error(work, lambda _first: f"linerate.rdma.{work.__name__}", AnsibleFilterError)


def guard_lookup(run: Run) -> Run:
    """Wrap ``run`` of a lookup plugin, as a decorator. Each exception becomes an AnsibleLookupError, except errors of
    Ansible and undefined variables, which are raised again.
    """
    return _guard_with_error(run, lambda lookup: plugin_name(type(lookup)), AnsibleLookupError)


def _guard_with_error(work: Run, name: typing.Callable[[typing.Any], str], kind: type[AnsibleError]) -> Run:
    @functools.wraps(work)
    def guarded(*arguments: typing.Any, **options: typing.Any) -> typing.Any:
        try:
            return work(*arguments, **options)
        except (AnsibleError, UndefinedError):
            raise
        except RdmaError as error:
            # not from the error: a traceback has the text of what it came from
            raise kind(f"{name(next(iter(arguments), None))}: {error}") from None
        except Exception as error:
            raise kind(describe_error(error, name(next(iter(arguments), None)))) from None

    return typing.cast(Run, _mark_guarded(guarded))


def guard_callback(made: Class) -> Class:
    """Wrap the methods of a callback plugin that ansible-core calls, as a class decorator. An exception in such a
    method becomes a warning without the text of the exception, which ansible-core would show unchanged.
    """
    for name in {name for of in made.__mro__[:2] for name in vars(of) if name.startswith("v2_")}:
        setattr(made, name, _guard_with_warning(getattr(made, name), plugin_name(made)))
    return made


def _guard_with_warning(method: Run, where: str) -> Run:
    @functools.wraps(method)
    def guarded(*arguments: typing.Any, **options: typing.Any) -> typing.Any:
        try:
            return method(*arguments, **options)
        except Exception as error:
            Display().warning(describe_error(error, where))
            return None

    return typing.cast(Run, _mark_guarded(guarded))


def _mark_guarded(guarded: typing.Any) -> typing.Any:
    guarded.is_guarded = True
    return guarded
