# SPDX-License-Identifier: GPL-3.0-or-later

"""Data in a command line: what a tool would read as an option, and what a protocol of one command a line can't carry."""

from __future__ import annotations

from .errors import RdmaError
from .text import plain

#: characters of a refused value that are shown
_SHOWN = 80


class OperandError(RdmaError):
    """A value that stands in no command line. It came from a node, a pod or an object, and a correct one never looks so."""


def operand(value: str, what: str) -> str:
    """Return ``value`` as it is, for a place in a command line where the tool expects a value and no option.

    All values from outside go through this: ``--`` would protect the operands alone, and not every tool knows it.

    :param what: names the value for the reader, such as ``address of the server``
    :raises OperandError: it begins with ``-``, so that a tool takes it for an option, or it has a control character
    """
    if value.startswith("-"):
        raise OperandError(f"{what} {plain(value, _SHOWN)!r} begins with '-', and a tool would read it as an option", _REMEDY)
    return one_line(value, what)


def one_line(value: str, what: str) -> str:
    """Return ``value`` as it is, where it may stand in a protocol of lines.

    :raises OperandError: it has a character of Unicode's categories of controls and line ends (Cc, Zl, Zp)
    """
    wrong = next((sign for sign in value if _breaks(sign)), None)
    if wrong is not None:
        raise OperandError(f"{what} {plain(value, _SHOWN)!r} has the control character U+{ord(wrong):04X}", _REMEDY)
    return value


def _breaks(sign: str) -> bool:
    return sign < " " or "\x7f" <= sign <= "\x9f" or sign in "\u2028\u2029"


_REMEDY = "Look at the node, the pod or the object that says so: it is broken, or under the control of an attacker"
