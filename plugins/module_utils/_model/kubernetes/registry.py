# SPDX-License-Identifier: GPL-3.0-or-later

"""How a registry wants to be asked, and who asks it. Filled by _parse/registry.py."""

from __future__ import annotations

import base64
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Challenge:
    """The authentication that a registry requests.

    :ivar scheme: basic or bearer
    :ivar realm: of bearer: address of the token server
    """

    scheme: typing.Literal["basic", "bearer"]
    realm: str = ""
    service: str = ""
    scope: str = ""


@dataclasses.dataclass(frozen=True)
class RegistryLogin:
    """The credentials for one registry. Neither is shown when it is printed.

    :ivar basic: user and password, as HTTP takes them
    :ivar token: an identity token, with which a token server gives others
    """

    basic: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)


Logins = typing.Mapping[str, RegistryLogin]


def find_login(name: str, known: Logins) -> typing.Optional[RegistryLogin]:
    """Of an image without its tag: the longest entry that is its registry, or a path that it is below."""
    fitting = [place for place in known if name == place or name.startswith(f"{place}/")]
    return known[max(fitting, key=len)] if fitting else None


def list_secrets(known: Logins) -> set[str]:
    """Return all that must not be shown: the pairs, their parts, and tokens."""
    found: set[str] = set()
    for login in known.values():
        pair = base64.b64decode(login.basic).decode("utf-8", "replace") if login.basic else ""
        found |= {login.basic, login.token, pair.partition(":")[2]}
    return found - {""}
