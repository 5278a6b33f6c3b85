# SPDX-License-Identifier: GPL-3.0-or-later

"""HTML and SVG as a tree of function calls, up to a whole page. All text is escaped when it is added, so that no caller
can forget it: secrets, invisible characters and markup are neutralized, and the length is limited.
"""

from __future__ import annotations

import base64
import hashlib
import html
import typing

from ..._model.base.escape import is_link
from .text import shorten_plain


class Html(str):
    """A text that is already HTML, and is not escaped again when it is added to other HTML. Only this module and
    constants of the page create it.
    """


Content = typing.Union[str, "Html", None]
# elements that have no end
_VOID = {"input", "meta"}


def render_element(name: str, *content: Content, **attributes: typing.Union[str, int, bool, None]) -> Html:
    """Render an HTML element. Plain text in ``content`` and in attributes is shortened and escaped, Html is not, and
    None is omitted.

    :param name: tag of the element
    :param attributes: attributes by name. An underscore is replaced by a dash, and one at the end is removed:
        ``class_`` is ``class``, ``aria_label`` is ``aria-label``. True is an attribute without a value. False, None,
        and an ``href`` that is not a safe link, omit the attribute
    """
    parts = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(attribute)
        elif key == "href" and not is_link(str(value)):
            continue
        elif value is not None and value is not False:
            parts.append(f'{attribute}="{html.escape(shorten_plain(str(value)), quote=True)}"')
    start = f"<{' '.join(parts)}>"
    return Html(start if name in _VOID else f"{start}{join_content(*content)}</{name}>")


def join_content(*content: Content) -> Html:
    """Return the content concatenated as HTML. Plain text is shortened and escaped, Html is added unchanged, and None
    is omitted.
    """
    return Html(
        "".join(
            item if isinstance(item, Html) else html.escape(shorten_plain(item), quote=False)
            for item in content
            if item is not None
        )
    )


def render_document(title: str, style: str, *body: Content, dark: bool = True) -> str:
    """Return a self-contained HTML page. Its content security policy prevents the page from loading or running anything
    and from using any other style, even if the output of a tool contains markup.

    :param title: title of the page
    :param style: style sheet. It is a constant of the code and is not escaped
    :param body: content of the page
    :param dark: whether the page follows a system that prefers dark colors
    """
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = render_element(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">') if dark else None,
        render_element("meta", http_equiv="Content-Security-Policy", content=policy),
        render_element("title", title),
        Html(f"<style>{style}</style>"),
    )
    return f"<!DOCTYPE html>\n{render_element('html', head, render_element('body', *body), lang='en')}\n"
