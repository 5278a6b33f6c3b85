# SPDX-License-Identifier: GPL-3.0-or-later

"""The family of errors that the collection raises on purpose. _ansible.py turns each into one message; nobody else catches them broadly."""

from __future__ import annotations

from .escape import lines


class RdmaError(Exception):
    """Something that stops the work, in words for the reader. Its text is safe for a terminal, whatever outside text is in it.

    :ivar seen: what was seen, and where
    :ivar remedy: what to do about it; empty when the text of ``seen`` says it
    """

    def __init__(self, seen: str, remedy: str = "") -> None:
        super().__init__(lines(f"{seen}. {remedy}" if remedy else seen))
        self.seen = seen
        self.remedy = remedy


class ParseError(RdmaError):
    """Text of a tool or a file that does not have the form that it must have. Never replaced by a guess."""

    def __init__(self, source: str, text: str, expected: str) -> None:
        """:param source: tool or file; :param text: the part that was not understood; :param expected: the form that was looked for"""
        shown = text if len(text) <= 200 else text[:200] + "..."
        super().__init__(f"{source}: {shown!r} is not {expected}")


class ToolMissing(RdmaError):
    """A program that is not installed.

    :ivar tool: its name
    :ivar package: what brings it
    """

    def __init__(self, tool: str, package: str) -> None:
        super().__init__(f"{tool} is not installed", f"Install the package {package} on the node: 'dnf install {package}', or 'apt install {package}'")
        self.tool = tool
        self.package = package
