# SPDX-License-Identifier: GPL-3.0-or-later

"""The exceptions that the collection raises deliberately. A module or plugin of Ansible turns each into one error
message (``_ansible/module.py``).
"""

from __future__ import annotations

from .escape import escape_lines


class RdmaError(Exception):
    """An error that stops the work, with a message for the user. The message is escaped, so that it is safe for a
    terminal even if it quotes text from outside.

    :ivar seen: the problem, and where it was found
    :ivar remedy: next step of the user; empty if ``seen`` already contains it
    """

    def __init__(self, seen: str, remedy: str = "") -> None:
        super().__init__(escape_lines(f"{seen}. {remedy}" if remedy else seen))
        self.seen = seen
        self.remedy = remedy

    def describe(self) -> dict[str, str]:
        """Return the class name of the error and its remedy, as fields for the result of a module or plugin. The
        message is a separate field of that result.
        """
        return {"kind": type(self).__name__, "remedy": self.remedy}


class ParseError(RdmaError):
    """The error for text of a tool or file that does not have the required format. A parser raises it instead of
    guessing.
    """

    def __init__(self, source: str, text: str, expected: str) -> None:
        """Create an error whose message shows the text that was found and the format that was expected.

        :param source: name of the tool or file that the text comes from
        :param text: piece of the text that could not be parsed
        :param expected: description of the required format
        """
        shown = text if len(text) <= 200 else text[:200] + "..."
        super().__init__(f"{source}: {shown!r} is not {expected}")


class SourceRefused(RdmaError):
    """The error for one of several sources, such as the log of one pod, that is left out. The remaining sources are
    read.
    """


def wrap_unforeseen(error: Exception, what: str, quoted: bool = True) -> RdmaError:
    """Convert an unexpected exception, raised while the output of one node was processed, to an ``RdmaError``. The
    caller reports it as the error of that node and continues with the other nodes.

    :param what: start of the message; names the node or source of the output
    :param quoted: whether the message includes the exception's own text. False if that text may contain a password
    """
    remedy = (
        "Read the output that could not be processed. If it is correct, report this error as a defect of linerate.rdma"
    )
    return RdmaError(f"{what}: its output could not be processed: {describe_unforeseen(error, quoted)}", remedy)


def describe_unforeseen(error: Exception, quoted: bool = True) -> str:
    """Return the type of an unexpected exception, its text, and the file and the line that raised it.

    :param quoted: whether the result includes the exception's own text. False if that text may contain a password
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
    return f"{type(error).__name__}{text}{place}"


class ToolMissing(RdmaError):
    """The error for a program that is not installed.

    :ivar tool: name of the program
    :ivar package: name of the package that contains it
    """

    def __init__(self, tool: str, package: str) -> None:
        super().__init__(
            f"{tool} is not installed",
            f"Install the package {package} on the node: 'dnf install {package}', or 'apt install {package}'",
        )
        self.tool = tool
        self.package = package
