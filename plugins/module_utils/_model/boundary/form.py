# SPDX-License-Identifier: GPL-3.0-or-later

"""Classes that describe the format (``Form``), the range (``Range``) or the number (``Bound``) of data from outside the
collection.

A cluster, a node, a pod, a BMC and a folder all return text. A parser compares each text with its form before any other
code uses it. A field of a dataclass names the form in its annotation, ``Annotated[str, FORM]``, so that the loader
applies the same forms to the facts in a folder.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.errors import ParseError
from ..base.escape import escape_line
from ..base.text import cut_text, kind_of

#: characters of a refused text that a message shows
_SHOWN = 100


@dataclasses.dataclass(frozen=True)
class Form:
    """The format of one type of text.

    :ivar words: description of the format for messages: ``an IP address without a zone``
    :ivar example: a valid text
    :ivar longest: maximum length in characters; a longer text is rejected before ``read`` is called
    :ivar read: function that returns the text in its canonical form (lower case, shortest form), or None if the text is
        invalid
    """

    words: str
    example: str
    longest: int
    read: typing.Callable[[str], typing.Optional[str]]

    @property
    def expected(self) -> str:
        """Return the description of the format with an example, for messages."""
        return f"{self.words}, such as {self.example}"

    def parse(self, value: typing.Any) -> typing.Optional[str]:
        """Return the text in its canonical form. Return None if the value is not a text or does not have this
        format.
        """
        if not isinstance(value, str) or not value or len(value) > self.longest:
            return None
        return self.read(value)

    def fits(self, value: typing.Any) -> bool:
        """Return whether the value is a text of this format."""
        return self.parse(value) is not None

    def of(self, value: typing.Any, source: str) -> str:
        """Return the text in the canonical form of this format.

        :param value: value that should be a text of this format
        :param source: origin of the text, for the message
        :raises ParseError: the value does not have this format
        """
        found = self.parse(value)
        if found is None:
            raise ParseError(source, describe_rejected(value), self.expected)
        return found


@dataclasses.dataclass(frozen=True)
class Range:
    """The plausible range of a quantity, such as a LID. Both limits are included.

    :ivar words: the quantity, for messages: ``a LID``
    :ivar least: smallest plausible value
    :ivar most: largest plausible value
    """

    words: str
    least: float
    most: float

    @property
    def expected(self) -> str:
        return f"{self.words} from {self.least:g} to {self.most:g}"

    @property
    def example(self) -> float:
        return self.least

    def fits(self, value: typing.Any) -> bool:
        """Return whether the value is a number in the range. Return False for a value that is not a number, for
        booleans and for NaN.
        """
        return isinstance(value, (int, float)) and not isinstance(value, bool) and self.least <= value <= self.most


@dataclasses.dataclass(frozen=True)
class Bound:
    """The largest permitted number of items of a list or mapping.

    :ivar words: name of the items, for messages: ``ports of switches``
    :ivar most: the permitted number
    """

    words: str
    most: int

    @property
    def expected(self) -> str:
        return f"at most {self.most} {self.words}"

    def fits(self, value: typing.Sized) -> bool:
        """Return whether a list has no more items than allowed."""
        return len(value) <= self.most


def describe_rejected(value: typing.Any) -> str:
    """Return a rejected value as text for a message: short, in one line, with control characters escaped. A value that
    is not a text is described by its type.
    """
    return escape_line(cut_text(value if isinstance(value, str) else kind_of(value), _SHOWN))


def make_pattern(expression: typing.Pattern[str]) -> typing.Callable[[str], typing.Optional[str]]:
    """Return a function that gets a text, and returns it unchanged if the expression matches the whole text. Otherwise
    the function returns None.

    :param expression: pattern of the valid texts
    """
    return lambda text: text if expression.fullmatch(text) else None
