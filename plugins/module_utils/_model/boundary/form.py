# SPDX-License-Identifier: GPL-3.0-or-later

"""What a text of one type looks like: the one place that says which texts from outside are of the type.

A cluster, a node, a pod, a BMC and a folder all give text. A parser holds each text against its form before anything
else sees it. A field of a dataclass names the form in its annotation, ``Annotated[str, FORM]``, so that the loader
holds the facts of a folder against the same forms.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.errors import ParseError
from ..base.escape import line
from ..base.text import cut, kind_of

#: characters of a refused text that a message shows
_SHOWN = 100


@dataclasses.dataclass(frozen=True)
class Form:
    """One type of text.

    :ivar words: the form for messages: ``an IP address without a zone``
    :ivar example: a text of the type
    :ivar longest: most characters; a longer text is refused before ``read`` looks at it
    :ivar read: takes a text and returns it as the type writes it (lower case, shortest form), or None where the text is
        not of the type
    """

    words: str
    example: str
    longest: int
    read: typing.Callable[[str], typing.Optional[str]]

    @property
    def expected(self) -> str:
        """Return the form with an example, for messages."""
        return f"{self.words}, such as {self.example}"

    def parse(self, value: typing.Any) -> typing.Optional[str]:
        """Parse the text as the type writes it; None for any other text, and for what is no text."""
        if not isinstance(value, str) or not value or len(value) > self.longest:
            return None
        return self.read(value)

    def fits(self, value: typing.Any) -> bool:
        """Return whether it is a text of this type."""
        return self.parse(value) is not None

    def of(self, value: typing.Any, source: str) -> str:
        """Return the text as the type writes it.

        :param source: what gave it, for the message
        :raises ParseError: it is not of the type
        """
        found = self.parse(value)
        if found is None:
            raise ParseError(source, shown(value), self.expected)
        return found


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers of one type: those that can be true.

    :ivar words: what they count, for messages: ``a LID``
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
        """Return whether it is such a number. Neither NaN nor an infinite one is."""
        return isinstance(value, (int, float)) and not isinstance(value, bool) and self.least <= value <= self.most


@dataclasses.dataclass(frozen=True)
class Bound:
    """The largest number of items of a list.

    :ivar words: what the items are, for messages: ``ports of switches``
    """

    words: str
    most: int

    @property
    def expected(self) -> str:
        return f"at most {self.most} {self.words}"

    def fits(self, value: typing.Sized) -> bool:
        """Return whether a list has no more items than allowed."""
        return len(value) <= self.most


def shown(value: typing.Any) -> str:
    """Return a refused value as a message may show it: short, in one line, without characters that steer a terminal."""
    return line(cut(value if isinstance(value, str) else kind_of(value), _SHOWN))


def make_pattern(expression: typing.Pattern[str]) -> typing.Callable[[str], typing.Optional[str]]:
    """Make a function that reads the texts that the whole expression matches, and leaves them as they are."""
    return lambda text: text if expression.fullmatch(text) else None
