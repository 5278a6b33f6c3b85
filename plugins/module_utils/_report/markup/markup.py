# SPDX-License-Identifier: GPL-3.0-or-later

"""HTML and SVG as a tree of calls, up to a whole page. All text is made harmless on its way in, so no caller can forget
it: secrets, invisible signs, markup, length.
"""

from __future__ import annotations

import base64
import hashlib
import html
import typing

from ..._model.base.escape import is_link
from .text import short


class Html(str):
    """Text that is HTML already. Only this module and constants of the page make one."""


Content = typing.Union[str, "Html", None]
# elements that have no end
_VOID = {"input", "meta"}


def element(name: str, *content: Content, **attributes: typing.Union[str, int, bool, None]) -> Html:
    """Render an element; plain text in ``content`` and in attributes becomes harmless.

    :param attributes: ``class_`` is ``class``, ``aria_label`` is ``aria-label``; True is an attribute without a value;
        False and None leave it out
    """
    parts = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(attribute)
        elif key == "href" and not is_link(str(value)):
            continue
        elif value is not None and value is not False:
            parts.append(f'{attribute}="{html.escape(short(str(value)), quote=True)}"')
    start = f"<{' '.join(parts)}>"
    return Html(start if name in _VOID else f"{start}{join(*content)}</{name}>")


def join(*content: Content) -> Html:
    """Content beside each other."""
    return Html(
        "".join(
            item if isinstance(item, Html) else html.escape(short(item), quote=False)
            for item in content
            if item is not None
        )
    )


def document(title: str, style: str, *body: Content, dark: bool = True) -> str:
    """Return a page that needs nothing from outside: nothing may be loaded or run, and no other style may count,
    whatever a tool's output holds.

    :param style: a style sheet; it is a constant of the code, and not made harmless
    :param dark: whether it follows a system that is dark
    """
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">') if dark else None,
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", title),
        Html(f"<style>{style}</style>"),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body), lang='en')}\n"
