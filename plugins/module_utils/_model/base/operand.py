# SPDX-License-Identifier: GPL-3.0-or-later

"""Data in a command line, in a line of a protocol and in the path of a URL: what these can't carry without becoming
something else."""

from __future__ import annotations

import re

from .errors import RdmaError
from .text import plain

#: characters of a refused value that are shown
_SHOWN = 80


class OperandError(RdmaError):
    """A value that stands in no command line, line or path. It came from a node, a pod or an object, and a correct one
    never looks so."""


def operand(value: str, what: str) -> str:
    """Return ``value`` as it is, for a place in a command line where the tool expects a value and no option.

    All values from outside go through this: ``--`` would protect the operands alone, and not every tool knows it.

    :param what: names the value for the reader, such as ``address of the server``
    :raises OperandError: it begins with ``-``, so that a tool takes it for an option, or it has a control character
    """
    if value.startswith("-"):
        raise OperandError(
            f"{what} {plain(value, _SHOWN)!r} begins with '-', and a tool would read it as an option", _REMEDY
        )
    return one_line(value, what)


def one_line(value: str, what: str) -> str:
    """Return ``value`` as it is, where it may stand in a protocol of lines.

    :raises OperandError: it has a character of Unicode's categories of controls and line ends (Cc, Zl, Zp), or one that
        UTF-8 can't carry (Cs)
    """
    wrong = next((sign for sign in value if _is_line_breaking(sign)), None)
    if wrong is not None:
        raise OperandError(f"{what} {plain(value, _SHOWN)!r} has the control character U+{ord(wrong):04X}", _REMEDY)
    return value


def part_of_path(name: str) -> str:
    """Return the name of an object of Kubernetes as it is, for its place in the path of a URL. An empty one is the path
    of a list.

    [k8s.io/apimachinery pkg/api/validation/path: no name is ``.`` or ``..``, or has ``/`` or ``%``]

    :raises OperandError: it would be more than this part of the path
    """
    if _NO_PART.search(name):
        raise OperandError(f"{plain(name, _SHOWN)!r} is no name of an object of Kubernetes", _REMEDY)
    return name


def _is_line_breaking(sign: str) -> bool:
    return sign < " " or "\x7f" <= sign <= "\x9f" or sign in "\u2028\u2029" or "\ud800" <= sign <= "\udfff"


_NO_PART = re.compile(r"\A\.{1,2}\Z|[/%?#\\]|[^!-~]")
_REMEDY = "Look at the node, the pod or the object that says so: it is broken, or under the control of an attacker"
