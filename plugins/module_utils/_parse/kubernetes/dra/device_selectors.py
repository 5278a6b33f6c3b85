# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse device selectors in CEL, as far as they can be evaluated without a CEL engine: comparisons of device attributes
and of the driver with literals, joined by and, or and not.

Other parts of an expression, such as quantities, versions, regular expressions and macros, have an unknown value.
[k8s.io/dynamic-resource-allocation v0.36 cel; cel-spec langdef]
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ...._model.base.errors import ParseError

#: parts of an expression, and how deep it is nested, that are looked at
_MOST_PARTS, _DEEPEST = 500, 40

_TOKEN = re.compile(
    r"\s{0,1000}(?:(?P<text>r?\"(?:[^\"\\\n]|\\.){0,1000}\"|r?'(?:[^'\\\n]|\\.){0,1000}')|(?P<number>[0-9]{1,18}\b)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]{0,63})|(?P<sign>&&|\|\||==|!=|<=|>=|[-<>!.,()\[\]?:+*/%{}]))"
)
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'", "\\\\": "\\"}

Literal = typing.Union[str, int, bool]


@dataclasses.dataclass(frozen=True)
class Part:
    """A node of the syntax tree of a device selector.

    :ivar kind: ``literal``, ``driver``, ``attribute``, ``attributes``, ``list``, the sign of an operator, the name of a
        function such as ``has``, or ``unknown`` for a part that cannot be evaluated
    :ivar value: value of a literal, ``domain/name`` of an attribute (also for ``has``), or domain of ``attributes``;
        otherwise None
    :ivar parts: operands of an operator, arguments of a function, or items of a list
    """

    kind: str
    value: typing.Optional[Literal] = None
    parts: tuple[Part, ...] = ()


_UNKNOWN = Part("unknown")


def parse(expression: str) -> Part:
    """Return the syntax tree of a CEL expression. A part of an unsupported form has the kind ``unknown``.

    :raises ParseError: the text is not an expression, or has too many or too deeply nested parts
    """
    return _Parser(expression).parse()


class _Parser:
    def __init__(self, expression: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._text = expression
        at, text = 0, expression.strip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or len(self._tokens) >= _MOST_PARTS:
                raise self._make_parse_error("an expression of supported parts, and not too many parts")
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()
        self._at = self._depth = 0

    def _make_parse_error(self, what: str) -> ParseError:
        return ParseError("selector of devices", self._text, what)

    def parse(self) -> Part:
        """Return the expression. A conditional expression is unknown.

        :raises ParseError: the text is no single expression of the supported form
        """
        found = self._parse_disjunction()
        # behind a condition stand its two values, which are not looked at
        if self._take_sign("?"):
            return _UNKNOWN
        if self._at < len(self._tokens):
            raise self._make_parse_error("one expression; more text follows its end")
        return found

    def _take_sign(self, *signs: str) -> str:
        """Consume the next token and return it if it is one of the given signs. Otherwise consume nothing and return an
        empty string.

        :param signs: operators or brackets
        """
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "sign" and self._tokens[self._at][1] in signs:
            self._at += 1
            return self._tokens[self._at - 1][1]
        return ""

    def _require_sign(self, sign: str) -> None:
        if not self._take_sign(sign):
            raise self._make_parse_error(f"a complete expression; {sign} is missing")

    def _parse_disjunction(self) -> Part:
        """Return operands that are joined by ``||``, or the operand if there is one.

        :raises ParseError: the expression is nested too deeply
        """
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._make_parse_error(f"fewer than {_DEEPEST} levels of nesting")
        parts = [self._parse_conjunction()]
        while self._take_sign("||"):
            parts.append(self._parse_conjunction())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Part("||", parts=tuple(parts))

    def _parse_conjunction(self) -> Part:
        parts = [self._parse_relation()]
        while self._take_sign("&&"):
            parts.append(self._parse_relation())
        return parts[0] if len(parts) == 1 else Part("&&", parts=tuple(parts))

    def _parse_relation(self) -> Part:
        """Return a comparison or a membership (``in``), or its left side if there is none."""
        left = self._parse_arithmetic()
        sign = self._take_sign(*_COMPARISONS)
        if not sign and self._tokens[self._at : self._at + 1] == [("name", "in")]:
            self._at += 1
            sign = "in"
        return Part(sign, parts=(left, self._parse_arithmetic())) if sign else left

    def _parse_arithmetic(self) -> Part:
        """Return an operand. The result of arithmetic is unknown."""
        found = self._parse_negation()
        while self._take_sign("+", "*", "/", "%", "-"):
            self._parse_negation()
            found = _UNKNOWN
        return found

    def _parse_negation(self) -> Part:
        """Return an operand with its ``!``. An even number of them has no effect."""
        times = 0
        while self._take_sign("!"):
            times += 1
        found = self._parse_minus()
        return Part("!", parts=(found,)) if times % 2 else found

    def _parse_minus(self) -> Part:
        """Return an operand with its ``-``. The negative of anything but an integer is unknown."""
        if not self._take_sign("-"):
            return self._parse_member()
        found = self._parse_member()
        known = found.kind == "literal" and isinstance(found.value, int) and not isinstance(found.value, bool)
        return Part("literal", -int(found.value or 0)) if known else _UNKNOWN

    def _parse_member(self) -> Part:
        """Parse a value, and the members, indices and function calls that follow it, such as
        ``device.attributes["dra.net"].rdma``. Return its node of the syntax tree.

        :raises ParseError: the expression is not complete
        """
        name, found = self._parse_primary()
        while True:
            if self._take_sign("."):
                optional = bool(self._take_sign("?"))
                part = self._take_token("name")
                if self._take_sign("("):
                    name, found = "", self._make_function_part(found, part, self._parse_arguments(")"))
                else:
                    name, found = self._resolve_member(name, found, part)
                if optional:
                    name, found = "", _UNKNOWN
            elif self._take_sign("["):
                inside = self._parse_arguments("]")
                key = inside[0].value if len(inside) == 1 and inside[0].kind == "literal" else None
                name, found = self._resolve_member(name, found, key) if isinstance(key, str) else ("", _UNKNOWN)
            elif self._take_sign("("):
                inside = self._parse_arguments(")")
                present = name == "has" and len(inside) == 1 and inside[0].kind == "attribute"
                name, found = "", Part("has", inside[0].value) if present else _UNKNOWN
            else:
                return found

    def _resolve_member(self, name: str, found: Part, part: str) -> tuple[str, Part]:
        """Resolve the member of a value, such as ``driver`` of ``device``.

        :param name: name of the value if a known name can begin with it, such as ``device``; otherwise empty
        :param found: node of the value in the syntax tree
        :param part: name of the member
        :returns: the name of the member, in the form of ``name``, and the node of the member in the syntax tree
        """
        if name == "device" and part == "driver":
            return "", Part("driver")
        if name == "device":
            return f"device.{part}", _UNKNOWN
        if name == "device.attributes":
            return "", Part("attributes", part)
        if found.kind == "attributes":
            return "", Part("attribute", f"{found.value}/{part}")
        return "", _UNKNOWN

    @staticmethod
    def _make_function_part(of: Part, name: str, arguments: tuple[Part, ...]) -> Part:
        if name in ("startsWith", "endsWith", "contains") and len(arguments) == 1:
            return Part(name, parts=(of, *arguments))
        return Part(name, parts=(of,)) if name == "lowerAscii" and not arguments else _UNKNOWN

    def _parse_primary(self) -> tuple[str, Part]:
        """Parse a value without the members that follow it. Return the name of the value, which is empty unless a known
        name can begin with it (such as ``device``), and its node of the syntax tree.

        :raises ParseError: the expression is not complete
        """
        if self._take_sign("("):
            found = self._parse_disjunction()
            if self._take_sign("?"):
                self._parse_disjunction()
                self._require_sign(":")
                self._parse_disjunction()
                found = _UNKNOWN
            self._require_sign(")")
            return "", found
        if self._take_sign("["):
            return "", Part("list", parts=self._parse_arguments("]"))
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")
        self._at += 1
        if kind == "number":
            return "", Part("literal", int(text))
        if kind == "text":
            return "", Part("literal", _strip_quotes(text))
        if kind == "name" and text in ("true", "false"):
            return "", Part("literal", text == "true")
        if kind == "name":
            return text, _UNKNOWN
        raise self._make_parse_error("a complete expression; a value is missing")

    def _take_token(self, kind: str) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != kind:
            raise self._make_parse_error(f"a complete expression; a {kind} is missing")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _parse_arguments(self, end: str) -> tuple[Part, ...]:
        """Return the expressions between commas, up to and including a closing sign.

        :param end: the closing sign, such as ``)``
        """
        found: list[Part] = []
        while not self._take_sign(end):
            if found:
                self._require_sign(",")
            found.append(self._parse_disjunction())
        return tuple(found)


def _strip_quotes(text: str) -> str:
    if text.startswith("r"):
        return text[2:-1]
    return re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), text[1:-1])
