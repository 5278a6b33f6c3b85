# SPDX-License-Identifier: GPL-3.0-or-later

"""The search for many names in a text. Its duration depends on the length of the text and not on the names, since
switches on the fabric choose their own names.
"""

from __future__ import annotations

import re
import typing

#: what a name goes on with: worker-1 is not in 'worker-10 mlx5_0'
_WORD, _LETTER = re.compile(r"[\w.-]+"), re.compile(r"\w")
#: letters of a name: a node's has 253 and its HCA's 15, a switch's 64; words of it
_MOST_LETTERS, _MOST_WORDS = 320, 16
#: letters that are no word before the first word of a name, or behind its last one
_MOST_AROUND = 4
#: letters of a text in which names are sought
_MOST_TEXT = 4096


class Mentions:
    """A search for many names in texts.

    :param names: names to find. Names without a letter or digit, and names with too many words or characters, are never
        found
    """

    def __init__(self, names: typing.Iterable[str]) -> None:
        #: names by what is from their first word to the last one
        self._names: dict[str, set[str]] = {}
        self._words = 0
        for name in names:
            words = [*_WORD.finditer(name)] if len(name) <= _MOST_LETTERS and _LETTER.search(name) else []
            if 0 < len(words) <= _MOST_WORDS:
                self._names.setdefault(name[words[0].start() : words[-1].end()], set()).add(name)
                self._words = max(self._words, len(words))

    def of(self, text: str) -> set[str]:
        """Return all names that occur in the text as whole words. Only the first ``_MOST_TEXT`` characters are
        searched.
        """
        text = text[:_MOST_TEXT]
        words = [match.span() for match in _WORD.finditer(text)]
        found: set[str] = set()
        for place, (start, _end) in enumerate(words):
            for last in range(place, min(place + self._words, len(words))):
                end = words[last][1]
                known = self._names.get(text[start:end])
                if known is not None:
                    before = words[place - 1][1] if place else -1
                    behind = words[last + 1][0] if last + 1 < len(words) else len(text) + 1
                    found.update(name for name in _list_text_spans(text, start, end, before, behind) if name in known)
        return found


def _list_text_spans(text: str, start: int, end: int, before: int, behind: int) -> typing.Iterator[str]:
    """Yield each part of a text that consists of a sequence of words and of up to _MOST_AROUND characters on either
    side of it that do not belong to another word.

    :param start: position of the first word
    :param end: position after the last word
    :param before: end of the previous word, or -1 if there is none
    :param behind: start of the next word, or the length of the text plus 1 if there is none
    """
    for first in (start, *range(start - 1, max(before, start - 1 - _MOST_AROUND), -1)):
        for last in (end, *range(end + 1, min(behind, end + 1 + _MOST_AROUND))):
            yield text[first:last]
