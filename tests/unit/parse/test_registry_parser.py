# SPDX-License-Identifier: GPL-3.0-or-later

"""What registries say, and the file of their users."""

from __future__ import annotations

import base64
import json
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.registry import (
    Challenge,
    RegistryLogin,
    find_login,
    list_secrets,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.registry import (
    parse_challenge,
    parse_logins,
    parse_tags,
    token_of,
)

PAIR = base64.b64encode(b"user:pass:word").decode()


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('Basic realm="x"', Challenge("basic")),
        (
            'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push"',
            Challenge("bearer", "https://auth.docker.io/token", "registry.docker.io", "repository:a/b:pull,push"),
        ),
        ('bearer realm=https://x/y , error="invalid_token"', Challenge("bearer", "https://x/y")),
        (r'Bearer realm="https://x/\"q\""', Challenge("bearer", 'https://x/"q"')),
        ('Bearer realm="https://x", realm="https://other"', Challenge("bearer", "https://x")),
        ("Bearer service=x", None),
        ("Negotiate", None),
        ("", None),
    ],
)
def test_challenges(header: str, found: typing.Optional[Challenge]) -> None:
    assert parse_challenge(header) == found


def test_users_by_registry_and_path() -> None:
    auths = {
        "quay.io": {"auth": PAIR},
        "https://index.docker.io/v1/": {"username": "a", "password": "b"},
        "mirror.example:5000/team": {"identitytoken": "t"},
        "broken.example": {"auth": "%%%"},
        "helper.example": {},
    }
    known = parse_logins(json.dumps({"auths": auths, "credsStore": "desktop"}))
    assert set(known) == {"quay.io", "index.docker.io", "mirror.example:5000/team"}
    assert find_login("quay.io/a/b", known) == RegistryLogin(PAIR)
    assert find_login("mirror.example:5000/team/a", known) == RegistryLogin("", "t")
    assert find_login("mirror.example:5000/teams/a", known) is None
    assert list_secrets(known) == {PAIR, "pass:word", base64.b64encode(b"a:b").decode(), "b", "t"}
    assert PAIR not in repr(known) and "'t'" not in repr(known)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"auths": []}', '{"auths": {"a": 5}}', "[" * 100_000])
def test_a_file_that_is_none_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(RdmaError, match="mapping auths"):
        parse_logins(text)


def test_a_token_that_would_end_a_line_of_http_is_none() -> None:
    assert token_of('{"token": "a.b-c"}') == token_of('{"access_token": "a.b-c"}') == "a.b-c"
    for text in ("", "{}", '{"token": "a\\r\\nHost: x"}', '{"token": 5}', '{"token": ""}'):
        with pytest.raises(RdmaError):
            token_of(text)


def test_tags() -> None:
    assert parse_tags('{"tags": ["1", 2, "3"]}') == ("1", "3")
    long = "1" * 128
    assert parse_tags(json.dumps({"tags": [long, f"{long}1", "a b", "a\n", "", "\u0661", "-a", "_a"]})) == (long, "_a")
    # of a repository that is empty
    assert parse_tags('{"name": "a", "tags": null}') == ()
    for text in ("", "{}", '{"errors": []}', '{"tags": "1"}'):
        with pytest.raises(RdmaError):
            parse_tags(text)


@hypothesis.given(
    some.dictionaries(
        some.sampled_from(["realm", "service", "scope"]),
        some.text(some.characters(min_codepoint=32, max_codepoint=126), min_size=1),
    )
)
def test_what_is_quoted_comes_back(parameters: dict[str, str]) -> None:
    quoted = ",".join(
        '{}="{}"'.format(key, value.replace("\\", "\\\\").replace('"', '\\"')) for key, value in parameters.items()
    )
    found = parse_challenge(f"Bearer {quoted}")
    assert found == (Challenge("bearer", **parameters) if parameters.get("realm") else None)
