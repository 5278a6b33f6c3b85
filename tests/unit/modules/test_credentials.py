# SPDX-License-Identifier: GPL-3.0-or-later

"""What kubernetes.core takes as credentials leads our modules to the same API server as the same user. Its own client
stands beside ours in each test."""

from __future__ import annotations

import base64
import dataclasses
import http.server
import json
import os
import pathlib
import re
import ssl
import stat
import threading
import typing

import kubernetes.client
import pytest
import yaml
from ansible import constants
from ansible.errors import AnsibleLookupError
from kubernetes.config import incluster_config, kube_config

from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as theirs
from ansible_collections.linerate.rdma.plugins.lookup.kubeconfig import LookupModule
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import find_credentials
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from lab.pki import Pki

TOKEN = "sha256~token-that-nobody-may-see"
OTHER = "sha256~token-of-a-file"
PASSWORD = "pass-word-that-nobody-may-see"
ANSWERS = {
    "/version": {"kind": "Version", "major": "1", "minor": "34", "gitVersion": "v1.34.4"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": []},
}


@dataclasses.dataclass(frozen=True)
class Seen:
    """As whom, and by which way, a request came."""

    user: str = ""
    acting_as: str = ""
    groups: tuple[str, ...] = ()
    certificate: str = ""
    proxy: str = ""
    secure: bool = False


class Server:
    """An API server, or a proxy in front of one, that remembers who asked."""

    def __init__(self, context: typing.Optional[ssl.SSLContext] = None) -> None:
        self.seen: list[Seen] = []
        self.paths: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                peer = self.connection.getpeercert() if context and isinstance(self.connection, ssl.SSLSocket) else None
                names = [
                    value
                    for part in typing.cast(typing.Any, peer or {}).get("subject", ())
                    for key, value in part
                    if key == "commonName"
                ]
                groups = tuple(self.headers.get_all("Impersonate-Group") or ())
                proxy = (
                    f"proxy {self.headers.get('Proxy-Authorization', '')}".strip()
                    if self.path.startswith("http://")
                    else ""
                )
                user, acting = self.headers.get("Authorization", ""), self.headers.get("Impersonate-User", "")
                outer.seen.append(Seen(user, acting, groups, "".join(names), proxy, bool(context)))
                path = re.sub(r"^http://[^/]+", "", self.path)
                outer.paths.append(path)
                body = json.dumps(ANSWERS.get(path, {"kind": "APIResourceList", "resources": []})).encode()
                self.send_response(403 if "/exec" in path else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_CONNECT(self) -> None:
                outer.seen.append(
                    Seen(proxy=f"connect {self.path} {self.headers.get('Proxy-Authorization', '')}".strip())
                )
                self.send_error(403)

            def log_message(self, format: str, *arguments: typing.Any) -> None:
                """Says nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def take(self) -> set[Seen]:
        seen, self.seen = set(self.seen), []
        return seen


class Module:
    """What connect asks of an AnsibleModule."""

    def __init__(self, options: typing.Mapping[str, typing.Any]) -> None:
        self.params = dict(options)
        self.no_log_values: set[str] = set()


class World:
    """Two servers, their certificates, and an environment that has nothing but what a test says."""

    def __init__(self, folder: pathlib.Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.patch = patch
        pki = Pki(folder / "pki", "")
        pki.identity("server", "server", hosts=["127.0.0.1"])
        pki.identity("client", "client")
        self.ca, self.cert, self.key = (str(pki.path(name)) for name in ("ca.crt", "client.crt", "client.key"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.path("server.crt"), pki.path("server.key"))
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(self.ca)
        self.secure, self.plain = Server(context), Server()
        for name in list(os.environ):
            if name.startswith(("K8S_AUTH_", "KUBE", "HELM_")) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        patch.setenv("HOME", str(folder))
        patch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", "~/.kube/config")

    def kubeconfig(
        self, name: str = "kubeconfig", token: str = OTHER, server: typing.Optional[str] = None, **more: str
    ) -> str:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        users = [{"name": "u", "user": {"token": token}}, {"name": "v", "user": {"token": f"{token}-v"}}]
        contexts = [{"name": user["name"], "context": {"cluster": "c", "user": user["name"]}} for user in users]
        cluster = {"server": server or self.secure.url, "certificate-authority": self.ca, **more}
        config = {
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": users,
            "contexts": contexts,
            "current-context": "u",
        }
        path.write_text(yaml.safe_dump(config))
        return str(path)

    def pod(self) -> None:
        """A pod, with the token of its service account."""
        for name, text in (
            ("SERVICE_TOKEN_FILENAME", TOKEN),
            ("SERVICE_CERT_FILENAME", pathlib.Path(self.ca).read_text()),
        ):
            path = self.folder / name
            path.write_text(text)
            self.patch.setattr(incluster_config, name, str(path))
        self.patch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        self.patch.setenv("KUBERNETES_SERVICE_PORT", str(self.secure.port))

    def fresh(self) -> None:
        """As in a new process."""
        theirs._pool.clear()
        kubernetes.client.Configuration.set_default(None)
        for cache in pathlib.Path(os.environ.get("TMPDIR", "/tmp")).glob("k8srcp-*.json"):
            cache.unlink(missing_ok=True)

    def ask(self, options: dict[str, typing.Any]) -> tuple[set[Seen], set[Seen]]:
        """As whom kubernetes.core comes, and as whom we come."""
        self.fresh()
        theirs.get_api_client(**options).client.request("GET", "/version")
        first = self.take()
        self.fresh()
        connect(Module(options)).get("Namespace", "", "default")
        return first, self.take()

    def take(self) -> set[Seen]:
        return self.secure.take() | self.plain.take()


@pytest.fixture
def world(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[World]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = World(tmp_path, monkeypatch)
    yield here
    here.fresh()
    here.secure.server.shutdown()
    here.plain.server.shutdown()


BEARER = f"Bearer {TOKEN}"
USER = Seen(BEARER, secure=True)


def ways(world: World) -> typing.Iterator[tuple[str, dict[str, typing.Any], Seen]]:
    """Options by their names, and as whom they come."""
    secure, plain = world.secure.url, world.plain.url
    token = {"host": secure, "api_key": TOKEN}
    own = Seen(f"Bearer {OTHER}", secure=True)
    yield "token", {**token, "ca_cert": world.ca}, USER
    yield "slash at the end", {**token, "host": f"{secure}/", "ca_cert": world.ca}, USER
    yield "not verified", {**token, "validate_certs": False}, USER
    yield (
        "client certificate",
        {"host": secure, "ca_cert": world.ca, "client_cert": world.cert, "client_key": world.key},
        Seen(certificate="client", secure=True),
    )
    yield "user", {"host": plain, "username": "me", "password": PASSWORD}, Seen()
    yield "proxy", {"host": "http://10.255.255.1", "api_key": TOKEN, "proxy": plain}, Seen(BEARER, proxy="proxy")
    yield (
        "no proxy",
        {"host": plain, "api_key": TOKEN, "proxy": "http://127.0.0.1:1", "no_proxy": "127.0.0.1"},
        Seen(BEARER),
    )
    yield (
        "impersonated",
        {**token, "ca_cert": world.ca, "impersonate_user": "joe"},
        dataclasses.replace(USER, acting_as="joe"),
    )
    groups = {"impersonate_user": "joe", "impersonate_groups": ["a", "b"]}
    yield (
        "groups",
        {**token, "ca_cert": world.ca, **groups},
        dataclasses.replace(USER, acting_as="joe", groups=("a", "b")),
    )
    path = world.kubeconfig()
    yield "kubeconfig", {"kubeconfig": path}, own
    yield "context", {"kubeconfig": path, "context": "v"}, Seen(f"Bearer {OTHER}-v", secure=True)
    yield "kubeconfig, and all else", {"kubeconfig": "/no/such/file", **token, "ca_cert": world.ca}, USER
    yield (
        "kubeconfig, impersonated",
        {"kubeconfig": path, "impersonate_user": "joe"},
        dataclasses.replace(own, acting_as="joe"),
    )


def variables(options: typing.Mapping[str, typing.Any]) -> dict[str, str]:
    """The options as environment, by the names that kubernetes.core documents, which are AWX's, too."""
    names = {
        "validate_certs": "VERIFY_SSL",
        "ca_cert": "SSL_CA_CERT",
        "client_cert": "CERT_FILE",
        "client_key": "KEY_FILE",
    }
    texts = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in options.items()}
    return {f"K8S_AUTH_{names.get(name, name.upper())}": text for name, text in texts.items()}


def test_each_option_and_each_variable_leads_where_kubernetes_core_goes(world: World) -> None:
    for name, options, expected in ways(world):
        assert world.ask(options) == ({expected}, {expected}), name
        with pytest.MonkeyPatch.context() as patch:
            for variable, text in variables(options).items():
                patch.setenv(variable, text)
            assert world.ask({}) == ({expected}, {expected}), f"{name}, by the environment"


def test_two_tokens_or_servers_are_settled_as_kubernetes_core_settles_them(world: World) -> None:
    """Which one wins is another one in each release of the client."""
    path, plain = world.kubeconfig(), world.plain.url
    for options in (
        {"kubeconfig": path, "api_key": TOKEN},
        {"kubeconfig": path, "host": plain},
        {"kubeconfig": path, "username": "me", "password": PASSWORD, "host": plain},
    ):
        first, second = world.ask(options)
        assert first == second and len(first) == 1


def test_what_is_not_said_is_taken_where_kubernetes_core_takes_it(world: World) -> None:
    world.kubeconfig(".kube/config")
    assert world.ask({}) == ({Seen(f"Bearer {OTHER}", secure=True)},) * 2
    # several files, of which one need not be there
    path = world.kubeconfig("second", token=f"{OTHER}-2")
    both = f"{world.folder}/none:{path}"
    world.patch.setenv("KUBECONFIG", both)
    world.patch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", both)
    assert world.ask({}) == ({Seen(f"Bearer {OTHER}-2", secure=True)},) * 2
    # in a pod its service account comes before a file that nobody named, which is not even read
    world.pod()
    pathlib.Path(path).write_text("no: [yaml")
    seen = world.ask({})
    assert [{item.user.lower() for item in side} for side in seen] == [{BEARER.lower()}] * 2
    assert world.ask({"kubeconfig": world.kubeconfig("third")}) == ({Seen(f"Bearer {OTHER}", secure=True)},) * 2


def test_commands_in_pods_run_as_whom_all_else_does(world: World) -> None:
    options = {"host": world.plain.url, "api_key": TOKEN, "impersonate_user": "joe", "impersonate_groups": ["a", "b"]}
    cluster = connect(Module(options))
    world.take()
    with pytest.raises(ApiError):
        cluster.shell("training", "pod", "main", ["sh"], lambda: 0.0)
    assert any("/exec" in path for path in world.plain.paths)
    assert world.take() == {Seen(BEARER, "joe", ("a", "b"))}


def test_commands_in_pods_go_by_the_proxy_by_which_all_else_goes(world: World) -> None:
    """Also those of a kubeconfig with proxy-url, and of the environment. A proxy lets a websocket through by
    CONNECT."""
    far, plain = "http://10.255.255.1", world.plain.url
    options = {"host": far, "api_key": TOKEN, "proxy": plain}
    secret = {"proxy_headers": {"proxy_basic_auth": f"me:{PASSWORD}"}}
    basic = f" Basic {base64.b64encode(f'me:{PASSWORD}'.encode()).decode()}"
    path = world.kubeconfig(server=far, **{"proxy-url": plain})
    for given, environment, known in (
        (options, {}, ""),
        ({}, variables(options), ""),
        ({**options, **secret}, {}, basic),
        ({"kubeconfig": path}, {}, ""),
        ({}, {"K8S_AUTH_KUBECONFIG": path}, ""),
    ):
        with pytest.MonkeyPatch.context() as patch:
            for variable, text in environment.items():
                patch.setenv(variable, text)
            world.fresh()
            cluster = connect(Module(given))
            assert {item.proxy for item in world.take()} == {f"proxy{known}"}
            with pytest.raises(ApiError):
                cluster.shell("training", "pod", "main", ["sh"], lambda: 0.0)
            assert world.take() == {Seen(proxy=f"connect 10.255.255.1:80{known}")}


def test_no_message_and_nothing_that_ansible_shows_has_a_secret(world: World) -> None:
    cases: list[tuple[dict[str, typing.Any], str]] = [
        (
            {"host": "https://127.0.0.1:1", "api_key": TOKEN},
            "API server https://127.0.0.1:1: the API server did not respond",
        ),
        (
            {"host": "https://127.0.0.1:1", "api_key": f"{TOKEN}\n"},
            "api_key (K8S_AUTH_API_KEY) contains a blank or a line break",
        ),
        (
            {"host": f"https://me:{PASSWORD}@127.0.0.1:1", "api_key": TOKEN},
            "API server https://127.0.0.1:1: the API server did not respond",
        ),
        (
            {"host": world.plain.url, "api_key": TOKEN, "proxy": f"http://me:{PASSWORD}@127.0.0.1:1"},
            "the API server did not respond:",
        ),
        (
            {"host": world.plain.url, "api_key": TOKEN, "proxy": f"nonsense://me:{PASSWORD}@[::1"},
            f"API server {world.plain.url}: ",
        ),
        (
            {"host": world.secure.url, "api_key": TOKEN, "ca_cert": "/no/ca.crt"},
            "ca_cert (K8S_AUTH_SSL_CA_CERT) is /no/ca.crt, but this file does not exist",
        ),
        (
            {"host": world.secure.url, "client_cert": world.cert, "client_key": "/no/key"},
            "client_key (K8S_AUTH_KEY_FILE) is /no/key, but this file does not exist",
        ),
        (
            {"host": world.secure.url, "api_key": TOKEN, "ca_cert": world.key},
            f"API server {world.secure.url}: the API server did not respond",
        ),
        ({"host": world.secure.url, "api_key": TOKEN}, "The kubeconfig does not trust this server"),
        (
            {"host": world.plain.url},
            f"config in {world.folder}/.kube (the default), API server {world.plain.url}: the file does not exist",
        ),
        (
            {"context": "mine", "api_key": TOKEN},
            f"kubeconfig config in {world.folder}/.kube (the default): the file does not exist",
        ),
        (
            {
                "kubeconfig": {"kind": "Config", "clusters": TOKEN, "users": [{"user": {"token": TOKEN}}]},
                "api_key": TOKEN,
            },
            "kubeconfig given as a mapping (from rdma_kubeconfig or the option kubeconfig): ",
        ),
        (
            {"kubeconfig": {"current-context": "x", "contexts": [1], "clusters": 5, "users": []}},
            "kubeconfig given as a mapping (from rdma_kubeconfig or the option kubeconfig): ",
        ),
    ]
    for options, said in cases:
        for given, environment in ((options, {}), ({}, variables(options))):
            if "kubeconfig" in options and environment:
                continue
            module = Module(given)
            with pytest.MonkeyPatch.context() as patch, pytest.raises(ApiError) as caught:
                for name, text in environment.items():
                    patch.setenv(name, text)
                world.fresh()
                connect(module)
            assert said in str(caught.value), options
            assert TOKEN not in str(caught.value) and PASSWORD not in str(caught.value)
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
            assert ("api_key" not in options) or TOKEN in module.no_log_values


def test_a_kubeconfig_that_ansible_vault_encrypted_says_how_to_give_it(world: World) -> None:
    path = world.folder / "vaulted"
    path.write_text("$ANSIBLE_VAULT;1.1;AES256\n3636\n")
    with pytest.raises(ApiError, match="encrypted by Ansible Vault; give it as a mapping"):
        connect(Module({"kubeconfig": str(path)}))


def rendered(given: typing.Any = "") -> typing.Any:
    return LookupModule().run([given])[0]


def test_helm_gets_the_content_of_a_kubeconfig_as_a_file(world: World) -> None:
    """Helm's own command takes a path alone."""
    world.patch.setattr(constants, "DEFAULT_LOCAL_TMP", str(world.folder))
    kubeconfig = next(options["kubeconfig"] for name, options, _expected in ways(world) if name == "kubeconfig")
    content = yaml.safe_load(pathlib.Path(kubeconfig).read_text(encoding="utf-8"))
    path = rendered(content)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8")) == content


def test_helm_gets_the_same_credentials(world: World) -> None:
    """The kubeconfig that is made for it leads kubernetes.core's client, which nothing else is told, to the same server
    as the same user."""
    world.patch.setattr(constants, "DEFAULT_LOCAL_TMP", str(world.folder))
    for name, options, expected in ways(world):
        kubeconfig = options.pop("kubeconfig", "")
        with pytest.MonkeyPatch.context() as patch:
            for variable, text in variables(options).items():
                patch.setenv(variable, text)
            world.fresh()
            path = rendered(kubeconfig)
        if name == "kubeconfig":
            assert path == kubeconfig
            continue
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        made = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
        world.take()
        world.fresh()
        theirs.get_api_client(kubeconfig=path).client.request("GET", "/version")
        assert {dataclasses.replace(item, user=item.user.replace("Basic", "Bearer")) for item in world.take()} == {
            impersonating_nobody(expected, made)
        }, name
        user = made["users"][0]["user"]
        assert (user.get("as", ""), tuple(user.get("as-groups", ()))) == (expected.acting_as, expected.groups), name


def impersonating_nobody(expected: Seen, made: typing.Any) -> Seen:
    """As the Python client comes, which knows neither impersonation nor users with passwords of a kubeconfig."""
    user = made["users"][0]["user"]
    basic = base64.b64encode(f"{user['username']}:{user['password']}".encode()).decode() if "username" in user else ""
    return dataclasses.replace(expected, acting_as="", groups=(), user=f"Bearer {basic}" if basic else expected.user)


def test_helm_is_told_of_the_kubeconfig_wherever_it_is(world: World) -> None:
    path = world.kubeconfig(".kube/config")
    assert (rendered(), rendered(path), find_credentials({}, os.environ).where) == (
        path,
        path,
        f"kubeconfig config in {world.folder}/.kube (the default)",
    )
    world.patch.setenv("KUBECONFIG", path)
    assert rendered() == path
    world.patch.setenv("K8S_AUTH_KUBECONFIG", path)
    assert rendered() == path
    world.patch.setattr(constants, "DEFAULT_LOCAL_TMP", str(world.folder))
    # of several it takes one alone; and in a pod it would take the file, where the modules take the service account
    assert rendered(f"{path}:/none") not in ("", path)
    world.patch.delenv("K8S_AUTH_KUBECONFIG")
    world.pod()
    made = yaml.safe_load(pathlib.Path(rendered()).read_text(encoding="utf-8"))
    assert made["users"][0]["user"] == {"token": TOKEN}
    assert (
        base64.b64decode(made["clusters"][0]["cluster"]["certificate-authority-data"])
        == pathlib.Path(world.ca).read_bytes()
    )


def test_credentials_that_lead_nowhere_fail_helms_tasks_without_a_secret(world: World) -> None:
    world.patch.setenv("K8S_AUTH_HOST", "https://127.0.0.1:1")
    world.patch.setenv("K8S_AUTH_API_KEY", TOKEN)
    with pytest.raises(
        AnsibleLookupError, match=r"API server https://127\.0\.0\.1:1: the API server did not respond"
    ) as caught:
        rendered()
    assert TOKEN not in str(caught.value)
