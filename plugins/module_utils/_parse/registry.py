# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the responses of a container registry, and the file with the credentials of a client.

Sources: distribution spec 1.1 (manifests, tags), distribution/distribution docs/spec/auth/token.md (WWW-Authenticate,
the answer of the token server), RFC 9110 section 11 (challenges), docker/cli config.json and containers/image
containers-auth.json(5).
"""

from __future__ import annotations

import base64
import binascii
import re
import typing

from .._model.base.errors import ParseError, RdmaError
from .._model.kubernetes.images.registry import Challenge, Logins, RegistryLogin
from .limits import MIB, decode_json

_PARAMETER = re.compile(r'\s*([A-Za-z_]{1,32})\s*=\s*(?:"((?:[^"\\]|\\.){0,4096})"|([^\s",]{1,4096}))\s*(?:,|$)')
_MOST = 65536
#: a tag, whose length the distribution spec limits
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", re.ASCII)
#: bytes of an answer: a list of 10,000 tags of at most 128 characters has 1.3 MB, and some registries tell all tags at
#: once
_MOST_ANSWER = 8 * MIB


def parse_challenge(header: str) -> typing.Optional[Challenge]:
    """Parse the header WWW-Authenticate: the scheme Basic, or Bearer with the realm, the service and the scope of the
    token. Return None for any other scheme, and for Bearer without a realm.
    """
    scheme, _space, rest = header[:_MOST].strip().partition(" ")
    if scheme.lower() == "basic":
        return Challenge("basic")
    if scheme.lower() != "bearer":
        return None
    found: dict[str, str] = {}
    at = 0
    while at < len(rest):
        match = _PARAMETER.match(rest, at)
        if match is None:
            break
        found.setdefault(match[1].lower(), re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3])
        at = match.end()
    return (
        Challenge("bearer", found["realm"], found.get("service", ""), found.get("scope", ""))
        if found.get("realm")
        else None
    )


def _decode_answer(text: str) -> typing.Any:
    """Decode JSON. Return None if the text is not valid JSON, instead of raising an error whose message quotes the
    text, because the text may contain a secret.
    """
    try:
        return decode_json(text, "registry", most_bytes=_MOST_ANSWER, unique=False)
    except ParseError:
        return None


def parse_logins(text: str) -> Logins:
    """Return the credentials in a file of the form of docker's config.json or auth.json, by registry, or by registry
    and path. Entries without valid credentials are left out.

    :raises RdmaError: the text is not such a file. The message does not quote it
    """
    data = _decode_answer(text)
    entries = data.get("auths", {}) if isinstance(data, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise RdmaError("it is not a file of registry users; expected JSON with a mapping auths")
    return {
        _find_registry(name): found for name, entry in entries.items() if (found := _parse_login(entry)) is not None
    }


def _find_registry(name: str) -> str:
    place = re.sub(r"^https?://", "", name)
    return re.sub(r"/v[12]/?$", "", place).rstrip("/")


def _parse_login(entry: typing.Mapping[str, typing.Any]) -> typing.Optional[RegistryLogin]:
    """Return the login of a registry from an entry of a pull secret. Return None if the entry has neither a user with a
    password nor a token.
    """
    user, password, auth, token = (
        value if isinstance(value, str) else ""
        for value in map(entry.get, ("username", "password", "auth", "identitytoken"))
    )
    if user and password:
        auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    try:
        valid = b":" in base64.b64decode(auth.encode(), validate=True)
    except (ValueError, binascii.Error):
        valid = False
    # it becomes a line of HTTP
    return RegistryLogin(auth if valid else "", token) if valid or token else None


def token_of(text: str) -> str:
    """Return the token in the response of a token server.

    :raises RdmaError: the response has no valid token
    """
    data = _decode_answer(text)
    found = (data.get("token") or data.get("access_token")) if isinstance(data, dict) else None
    # it becomes a line of HTTP
    if not isinstance(found, str) or not re.fullmatch(r"[\x21-\x7e]{1,65536}", found):
        raise RdmaError("the token server returned no token")
    return found


def parse_tags(text: str) -> tuple[str, ...]:
    """Return the tags in the response of ``/v2/NAME/tags/list``. Texts that the distribution spec does not allow as a
    tag are left out.

    :param text: body of the response
    :raises RdmaError: the response is not a list of tags
    """
    data = _decode_answer(text)
    tags = data.get("tags") if isinstance(data, dict) else None
    if not isinstance(data, dict) or "tags" not in data or not isinstance(tags, (list, type(None))):
        raise RdmaError("the registry returned no list of tags")
    return tuple(tag for tag in tags or () if isinstance(tag, str) and _TAG.fullmatch(tag))
