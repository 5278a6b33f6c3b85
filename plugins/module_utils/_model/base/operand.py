# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of values before they are used in a command line, in a line-based protocol or in the path of a URL, where some
characters would change their meaning.
"""

from __future__ import annotations

import re

from .errors import RdmaError
from .text import cut_plain

#: characters of a refused value that are shown
_SHOWN = 80


class OperandError(RdmaError):
    """The error for a value that is not safe in a command line, a protocol line or a URL path. The value comes from a
    node, a pod or an object; a correct value never has this form.
    """


def require_operand(value: str, what: str) -> str:
    """Return ``value`` unchanged if it is safe in a command line where the tool expects a value and not an option.

    All values from outside go through this function: ``--`` would protect positional arguments only, and not every tool
    supports it.

    :param what: name of the value in the message, such as ``address of the server``
    :raises OperandError: the value begins with ``-``, so that a tool would parse it as an option, or has a control
        character
    """
    if value.startswith("-"):
        raise OperandError(
            f"{what} {cut_plain(value, _SHOWN)!r} begins with '-', so a tool would parse it as an option", _REMEDY
        )
    return one_line(value, what)


def one_line(value: str, what: str) -> str:
    """Return ``value`` unchanged if it is safe in a line-based protocol.

    :param what: name of the value in the message
    :raises OperandError: the value has a control character or line end (Unicode categories Cc, Zl, Zp), or a surrogate,
        which UTF-8 cannot encode (Cs)
    """
    wrong = next((sign for sign in value if _is_line_breaking(sign)), None)
    if wrong is not None:
        raise OperandError(f"{what} {cut_plain(value, _SHOWN)!r} has the control character U+{ord(wrong):04X}", _REMEDY)
    return value


def part_of_path(name: str) -> str:
    """Return the name of a Kubernetes object unchanged if it is safe as one segment of a URL path. An empty name gives
    the path of a list.

    [k8s.io/apimachinery pkg/api/validation/path: no name is ``.`` or ``..``, or has ``/`` or ``%``]

    :raises OperandError: the name would change other parts of the URL
    """
    if _NO_PART.search(name):
        raise OperandError(f"{cut_plain(name, _SHOWN)!r} is not a valid name of a Kubernetes object", _REMEDY)
    return name


def _is_line_breaking(sign: str) -> bool:
    return sign < " " or "\x7f" <= sign <= "\x9f" or sign in "\u2028\u2029" or "\ud800" <= sign <= "\udfff"


_NO_PART = re.compile(r"\A\.{1,2}\Z|[/%?#\\]|[^!-~]")
_REMEDY = "Examine the node, the pod or the object that reports this value: it is faulty or an attacker controls it"
