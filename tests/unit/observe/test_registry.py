# SPDX-License-Identifier: GPL-3.0-or-later

"""Registries that are asked for images, against one over TLS: there, missing, users, tokens, refusals, failures, and
one that never answers."""

from __future__ import annotations

import pathlib
import socket
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.registry import (
    Logins,
    RegistryLogin,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.images import registry as module
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.images.registry import (
    RegistryQuery,
    RegistryReply,
    ask,
)
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.registry_server import BASIC, TOKEN, Registry, RegistryServer

Serve = typing.Callable[..., Registry]
DIGEST = "sha256:" + "a" * 64
IMAGES = {"m/nvcr.io/tools": ["1", DIGEST], "m/driver": ["580.95-ubuntu24.04", "580.95.1", "570-rhel9"]}


@pytest.fixture(name="certificates", scope="module")
def _certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(name="serve")
def _serve(certificates: Certificates) -> typing.Iterator[Serve]:
    servers = []

    def start(**wanted: typing.Any) -> Registry:
        servers.append(RegistryServer(Registry(**{"images": IMAGES, **wanted}), certificates.of()))
        return servers[-1].registry

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(name="look")
def _look(certificates: Certificates) -> typing.Callable[..., RegistryReply]:
    def one(
        registry: Registry, name: str = "m/nvcr.io/tools:1", logins: typing.Optional[Logins] = None, **more: typing.Any
    ) -> RegistryReply:
        asked = RegistryQuery(f"{registry.address}/{name}", more.get("by_system", False))
        return ask([asked], logins or {}, str(certificates.authority), more.get("limit", 20))[asked]

    return one


Look = typing.Callable[..., RegistryReply]


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("m/nvcr.io/tools:1", "there"),
        (f"m/nvcr.io/tools@{DIGEST}", "there"),
        (f"m/nvcr.io/tools:9@{DIGEST}", "there"),
        ("m/nvcr.io/tools:2", "missing"),
        ("m/none:1", "missing"),
    ],
)
def test_an_image_is_there_or_missing(serve: Serve, look: Look, name: str, state: str) -> None:
    assert look(serve(), name).state == state


def test_each_tag_that_begins_so_will_do_where_the_system_is_added(serve: Serve, look: Look) -> None:
    registry = serve()
    assert look(registry, "m/driver:580.95", by_system=True) == RegistryReply("there", "580.95-ubuntu24.04")
    assert look(registry, "m/driver:57", by_system=True).state == "missing"
    # a list of tags that is none
    assert look(registry, "m/none:1", by_system=True) == RegistryReply(
        "silent", "the registry returned no list of tags"
    )


@pytest.mark.parametrize("way", ["basic", "bearer"])
def test_a_user_gets_in(serve: Serve, look: Look, way: str) -> None:
    registry = serve(way=way)
    assert look(registry, logins={registry.address: RegistryLogin(BASIC)}).state == "there"
    # of the registry, or of a path in it
    assert (
        look(
            registry,
            logins={f"{registry.address}/m": RegistryLogin(BASIC), registry.address: RegistryLogin("d3Jvbmc6")},
        ).state
        == "there"
    )
    assert look(registry, "m/none:1", logins={registry.address: RegistryLogin(BASIC)}).state == "missing"


def test_an_identity_token_gets_one_for_the_repository(serve: Serve, look: Look) -> None:
    registry = serve(way="bearer")
    assert look(registry, logins={registry.address: RegistryLogin(token="identity")}).state == "there"
    assert ("HEAD", "/v2/m/nvcr.io/tools/manifests/1", f"Bearer {TOKEN}") in registry.asked


@pytest.mark.parametrize("way", ["basic", "bearer"])
@pytest.mark.parametrize(
    ("basic", "who"), [("", "no user, because"), ("d3Jvbmc6d3Jvbmc=", "the user in the file of users")]
)
def test_who_has_no_right_is_refused_and_that_is_no_answer_on_the_image(
    serve: Serve, look: Look, way: str, basic: str, who: str
) -> None:
    registry = serve(way=way)
    said = look(registry, logins={registry.address: RegistryLogin(basic)} if basic else {})
    assert said.state == "refused" and "HTTP 401" in said.words and who in said.words
    assert basic not in said.words or not basic


@pytest.mark.parametrize(
    ("status", "state"),
    [(403, "refused"), (404, "missing"), (429, "silent"), (500, "silent"), (503, "silent"), (405, "silent")],
)
def test_status_of_an_answer(serve: Serve, look: Look, status: int, state: str) -> None:
    said = look(serve(status={"/manifests/1": status}))
    assert said.state == state and str(status) in said.words


def test_a_password_goes_to_no_token_server_without_tls(serve: Serve, look: Look) -> None:
    for realm in ("http://localhost:1/token", "https://user@localhost/token", "ftp://x/", "x"):
        registry = serve(way="bearer", realm=realm)
        said = look(registry, logins={registry.address: RegistryLogin(BASIC)})
        assert said.state == "silent" and "no password is sent" in said.words
        assert not any(BASIC in authorization for _method, _path, authorization in registry.asked)


def test_where_it_sends_us_no_password_goes(serve: Serve, look: Look) -> None:
    other = serve()
    registry = serve(status={"/manifests/1": 307}, location=f"https://{other.address}/v2/m/nvcr.io/tools/manifests/1")
    assert look(registry, logins={registry.address: RegistryLogin(BASIC)}).state == "there"
    assert [authorization for _method, _path, authorization in other.asked] == [""]
    away = serve(status={"/manifests/1": 307}, location="http://localhost/none")
    assert look(away).state == "silent"


def test_a_certificate_that_is_not_trusted_is_no_answer(serve: Serve) -> None:
    asked = RegistryQuery(f"{serve().address}/m/nvcr.io/tools:1")
    said = ask([asked], {}, "", 20)[asked]
    assert said.state == "silent" and "CERTIFICATE_VERIFY_FAILED" in said.words


def test_no_registry_at_all_is_found_once_and_not_for_each_image(certificates: Certificates) -> None:
    with socket.socket() as closed:
        closed.bind(("localhost", 0))
        host = f"localhost:{closed.getsockname()[1]}"
        images = [RegistryQuery(f"{host}/m/{number}:1") for number in range(200)]
        started = time.monotonic()
        said = ask(images, {}, str(certificates.authority), 20)
    assert {item.state for item in said.values()} == {"silent"} and all(
        f"no connection to {host}" in item.words for item in said.values()
    )
    assert time.monotonic() - started < 30


def test_a_slow_registry_delays_nobody_and_ends_at_the_limit(serve: Serve, certificates: Certificates) -> None:
    slow, quick = serve(held=("m/nvcr.io/tools",)), serve()
    images = [RegistryQuery(f"{slow.address}/m/nvcr.io/tools:{number}") for number in range(20)] + [
        RegistryQuery(f"{quick.address}/m/nvcr.io/tools:1")
    ]
    started = time.monotonic()
    said = ask(images, {}, str(certificates.authority), 3.0)
    assert time.monotonic() - started < 30
    assert said[images[-1]].state == "there"
    assert {said[image].state for image in images[:-1]} == {"silent"}


def test_silence_of_one_connection_has_its_own_limit(serve: Serve, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    said = look(serve(held=("m/nvcr.io/tools",)))
    assert said.state == "silent" and "did not respond" in said.words


@pytest.mark.parametrize("name", ["x y", "a", "UPPER/x"])
def test_a_name_that_is_none_is_no_answer(name: str) -> None:
    asked = RegistryQuery(name)
    assert ask([asked], {}, "", 20)[asked].state == "silent"


def test_an_authority_that_is_none_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("none", encoding="utf-8")
    for path in (file, tmp_path / "absent"):
        with pytest.raises(RdmaError, match="operators_registry_ca"):
            ask([], {}, str(path), 1)


def test_a_registry_with_lines_in_a_line_of_its_head_is_an_error(serve: Serve, look: Look) -> None:
    found = look(serve(more=(("X-Note", "\ra:" * 20_000),)))
    assert found.state == "silent" and "a line of its header contains a CR that is not at its end" in found.words
