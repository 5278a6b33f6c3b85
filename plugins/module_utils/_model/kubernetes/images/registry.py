# SPDX-License-Identifier: GPL-3.0-or-later

"""The authentication that a registry of images requests, and the user's credentials for it. Created by
_parse/registry.py.
"""

from __future__ import annotations

import base64
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Challenge:
    """The kind of authentication that a registry requests.

    :ivar scheme: basic or bearer
    :ivar realm: address of the token server, for authentication by a bearer token
    :ivar service: name of the registry for the token server
    :ivar scope: access that the token must grant
    """

    scheme: typing.Literal["basic", "bearer"]
    realm: str = ""
    service: str = ""
    scope: str = ""


@dataclasses.dataclass(frozen=True)
class RegistryLogin:
    """The credentials for one registry. They are not part of the repr.

    :ivar basic: user and password, encoded for HTTP basic authentication
    :ivar token: an identity token, which a token server exchanges for access tokens
    """

    basic: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)


Logins = typing.Mapping[str, RegistryLogin]


def find_login(name: str, known: Logins) -> typing.Optional[RegistryLogin]:
    """Return the credentials for an image: those of the longest known entry that equals the name of the image or is a
    parent path of it. Return None if there is no such entry.

    :param name: name of the image with its registry, without tag and digest
    :param known: credentials by registry, or by registry and path
    """
    fitting = [place for place in known if name == place or name.startswith(f"{place}/")]
    return known[max(fitting, key=len)] if fitting else None


def list_secrets(known: Logins) -> set[str]:
    """Return all texts that must not be shown: encoded credentials, passwords and tokens.

    :param known: credentials by registry, or by registry and path
    """
    found: set[str] = set()
    for login in known.values():
        pair = base64.b64decode(login.basic).decode("utf-8", "replace") if login.basic else ""
        found |= {login.basic, login.token, pair.partition(":")[2]}
    return found - {""}
