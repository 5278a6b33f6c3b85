# SPDX-License-Identifier: GPL-3.0-or-later

"""The family of errors that the collection raises on purpose. _ansible/module.py turns each into one message; nobody
else catches them broadly."""

from __future__ import annotations

from .escape import lines


class RdmaError(Exception):
    """Something that stops the work, in words for the reader. Its text is safe for a terminal, whatever outside text is
    in it.

    :ivar seen: what was seen, and where
    :ivar remedy: what to do about it; empty when the text of ``seen`` says it
    """

    def __init__(self, seen: str, remedy: str = "") -> None:
        super().__init__(lines(f"{seen}. {remedy}" if remedy else seen))
        self.seen = seen
        self.remedy = remedy

    def describe(self) -> dict[str, str]:
        """Return the kind of the error and its remedy, for the result of a module or a plugin: its message is there
        beside them."""
        return {"kind": type(self).__name__, "remedy": self.remedy}


class ParseError(RdmaError):
    """Text of a tool or a file that does not have the form that it must have. Never replaced by a guess."""

    def __init__(self, source: str, text: str, expected: str) -> None:
        """:param source: tool or file; :param text: the part that was not understood; :param expected: the form that
        was looked for"""
        shown = text if len(text) <= 200 else text[:200] + "..."
        super().__init__(f"{source}: {shown!r} is not {expected}")


def wrap_unforeseen(error: Exception, what: str, quoted: bool = True) -> RdmaError:
    """Convert an exception that nobody raised on purpose, met in what one node answered: it becomes the error of that
    node, and the others go on.

    :param what: whose answer it was met in; begins the message
    :param quoted: whether the exception's own text is shown; not where it may hold a password
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = (
        f" in {trace.tb_frame.f_code.co_filename.rpartition('/')[2]}, line {trace.tb_lineno}"
        if trace is not None
        else ""
    )
    text = f" ({str(error)[:200]!r})" if quoted and str(error) else ""
    remedy = "Look at what it answered; if that is in order, report this as a defect of linerate.rdma"
    return RdmaError(f"{what}: its answer could not be handled: {type(error).__name__}{text}{place}", remedy)


class ToolMissing(RdmaError):
    """A program that is not installed.

    :ivar tool: its name
    :ivar package: what brings it
    """

    def __init__(self, tool: str, package: str) -> None:
        super().__init__(
            f"{tool} is not installed",
            f"Install the package {package} on the node: 'dnf install {package}', or 'apt install {package}'",
        )
        self.tool = tool
        self.package = package
