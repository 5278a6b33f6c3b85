# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""HTML as a tree of calls. All text is escaped on its way in, so no caller can forget it."""

from __future__ import annotations

import html
import typing


class Html(str):
    """Text that is HTML already. Only this module and constants of the page make one."""


Content = typing.Union[str, "Html", None]


def element(name: str, *content: Content, **attributes: typing.Union[str, bool, None]) -> Html:
    """An element; plain text in ``content`` and in attributes is escaped.

    :param attributes: ``class_`` is ``class``; True is an attribute without a value; False and None leave it out
    """
    parts = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(attribute)
        elif value is not None and value is not False:
            parts.append(f'{attribute}="{html.escape(value, quote=True)}"')
    return Html(f"<{' '.join(parts)}>{join(*content)}</{name}>")


def join(*content: Content) -> Html:
    """Content beside each other."""
    return Html("".join(item if isinstance(item, Html) else html.escape(item, quote=True) for item in content if item is not None))
