# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the credentials for the API server by the rules of kubernetes.core. They come from module options, the
environment variables K8S_AUTH_*, a kubeconfig, or the service account of a pod.

kubernetes.core makes the client. This module predicts which source the client uses, so that an error message can name
it, and passes the same credentials to Helm. [kubernetes.core plugins/module_utils/k8s/client.py]
"""

from __future__ import annotations

import base64
import dataclasses
import os
import re
import typing
import urllib.parse

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_MAP, AUTH_PROXY_HEADERS_SPEC

from .._model.base.redact import REDACTED, redact_text
from .._observe.kubernetes.errors import CONFIGURATION, ApiError

try:
    import yaml
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_incluster_config
    from requests.utils import should_bypass_proxies
except ImportError:
    # the caller reports the missing library, or needs only the source of the credentials
    class ConfigException(Exception):  # type: ignore[no-redef]
        """Stands in for ConfigException of the kubernetes client if that is not installed."""

    Configuration = dict

    def load_incluster_config(client_configuration: typing.Any) -> None:
        """Replace the function of the kubernetes client, which is not installed.

        :param client_configuration: not used
        :raises ConfigException: always, as the client does outside of a pod
        """
        raise ConfigException


Environment = typing.Mapping[str, str]
#: by which of these a kubeconfig is not needed, beside host
_COMPLETE = (("username", "password"), ("api_key",), ("client_cert", "client_key"))
_ALONE = ("kubeconfig", "persist_config")
#: characters of a path, or of a list of them [Linux, PATH_MAX]
_MOST_OF_A_PATH = 4096
#: what names a kubeconfig, in words
_BY_OPTION, _BY_K8S_AUTH = "from rdma_kubeconfig or the option kubeconfig", "from K8S_AUTH_KUBECONFIG"
_BY_ENVIRONMENT, _BY_DEFAULT = "from KUBECONFIG", "the default"
#: how to name another one there
_ANOTHER = {
    _BY_OPTION: "-e rdma_kubeconfig=FILE",
    _BY_K8S_AUTH: "export K8S_AUTH_KUBECONFIG=FILE",
    _BY_ENVIRONMENT: "export KUBECONFIG=FILE",
    _BY_DEFAULT: "export KUBECONFIG=FILE",
}
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


@dataclasses.dataclass(frozen=True)
class Credentials:
    """The credentials that kubernetes.core uses for the API server, with the source from which it reads them.

    :ivar given: values by option name, of the options that are set in the module or else in the environment
    :ivar source: source that kubernetes.core uses
    :ivar named: whether the user has configured the source; False if it is a default
    :ivar kubeconfig: path of the kubeconfig, several paths as in KUBECONFIG, or its content; None for another source
    :ivar by: description of the variable or option that sets the kubeconfig; empty for another source
    """

    given: typing.Mapping[str, typing.Any]
    source: typing.Literal["options", "kubeconfig", "service account"]
    named: bool
    kubeconfig: typing.Any = None
    by: str = ""

    @property
    def where(self) -> str:
        """Return the source of the credentials and the URL of the API server, as text for messages. It contains no
        secrets.
        """
        server = self.given.get("host")
        if self.source == "options":
            return f"API server {shown_url(server)}"
        told = "service account of this pod" if self.source == "service account" else self.place
        if self.source == "kubeconfig" and self.by:
            told = f"{told} ({self.by})"
        return f"{told}, API server {shown_url(server)}" if server else told

    @property
    def place(self) -> str:
        """Return the kubeconfig as text for messages: ``kubeconfig config in /root/.kube``, or several joined by
        ``and``.
        """
        return f"kubeconfig {describe_kubeconfig(self.kubeconfig)}"

    @property
    def bare(self) -> bool:
        """Return whether the credentials are the current context of a single kubeconfig, so that any tool that reads a
        kubeconfig can use them.
        """
        several = os.pathsep in _convert_to_text(self.kubeconfig)
        return self.source == "kubeconfig" and not several and not set(self.given) - set(_ALONE)

    @property
    def secrets(self) -> frozenset[str]:
        """Return the parts of the credentials that must not appear in messages: tokens, passwords and users."""
        headers = self.given.get("proxy_headers") or {}
        pairs = [_convert_to_text(headers.get(name)) for name in ("proxy_basic_auth", "basic_auth")]
        texts = (
            [_convert_to_text(self.given.get(name)) for name in ("api_key", "password")]
            + pairs
            + [pair.partition(":")[2] for pair in pairs]
        )
        for name in ("proxy", "host"):
            user = _split_url(_convert_to_text(self.given.get(name)))[1]
            texts += [user, user.partition(":")[2]]
        return frozenset(part for text in texts for part in (text, *text.split()) if part.strip())

    def redact_server(self, server: typing.Any) -> str:
        """Return the URL of an API server for messages, without user, password, query and fragment."""
        # what follows '?' or '#' can't be part of an API server's address, and may be a token
        return self.redact_credentials(shown_url(server).partition("?")[0].partition("#")[0])

    def redact_credentials(self, text: str) -> str:
        """Return ``text`` with a placeholder for the secrets of the credentials and texts that look like secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, REDACTED)
        return redact_text(text)

    def examine(self) -> None:
        """Verify that the credentials are well-formed and that their files are readable. Error messages do not quote
        values that may contain secrets.

        :raises ApiError: a header value contains a blank or a control character, or a file is missing or unreadable
        """
        for name in ("host", "api_key", "impersonate_user"):
            if _CONTROL.search(_convert_to_text(self.given.get(name))):
                raise ApiError(
                    0,
                    CONFIGURATION,
                    f"{name}{_describe_origin(name)} contains a blank or a line break, which an HTTP header must not"
                    " contain",
                    self.where,
                )
        for name in ("ca_cert", "client_cert", "client_key"):
            path = self.given.get(name)
            if path and not os.path.isfile(path):
                raise ApiError(
                    0,
                    CONFIGURATION,
                    f"{name}{_describe_origin(name)} is {path}, but this file does not exist",
                    self.where,
                )
        if self.source == "kubeconfig" and isinstance(self.kubeconfig, str):
            _examine(self.kubeconfig, self.where, self.by)


def find_credentials(options: typing.Mapping[str, typing.Any], environment: Environment) -> Credentials:
    """Return the credentials that get_api_client of kubernetes.core will use.

    :param options: options of the module by name. None counts as not set
    :param environment: environment variables of the module by name
    """
    given = _read_given_credentials(options, environment)
    path, by = _kubeconfig(options, given, environment)
    if given.get("host") and any(all(given.get(name) for name in names) for names in _COMPLETE):
        return Credentials(given, "options", True)
    if given.get("kubeconfig") or given.get("context"):
        return Credentials(given, "kubeconfig", True, path, by)
    if _in_pod():
        return Credentials(given, "service account", True)
    present = any(os.path.exists(os.path.expanduser(part)) for part in path.split(os.pathsep) if part)
    return Credentials(given, "kubeconfig", bool(given or environment.get("KUBECONFIG") or present), path, by)


def _kubeconfig(
    options: typing.Mapping[str, typing.Any], given: typing.Mapping[str, typing.Any], environment: Environment
) -> tuple[typing.Any, str]:
    """Return two values: the kubeconfig in effect, and a description of its source. The order is: the option, which the
    playbooks set from rdma_kubeconfig, then K8S_AUTH_KUBECONFIG, then KUBECONFIG, then the default path.

    :param options: options of the module
    :param given: options that are set by the module or the environment variables K8S_AUTH_*
    :param environment: environment variables of the module by name
    """
    if given.get("kubeconfig"):
        return given["kubeconfig"], _BY_OPTION if options.get("kubeconfig") else _BY_K8S_AUTH
    if environment.get("KUBECONFIG"):
        return environment["KUBECONFIG"], _BY_ENVIRONMENT
    return "~/.kube/config", _BY_DEFAULT


def _read_given_credentials(
    options: typing.Mapping[str, typing.Any], environment: Environment
) -> dict[str, typing.Any]:
    found: dict[str, typing.Any] = {}
    for true_name, name in [
        *AUTH_ARG_MAP.items(),
        *((name, name) for name in ("impersonate_user", "impersonate_groups")),
    ]:
        value = options.get(name)
        if value is None and name == "proxy_headers":
            value = {
                key: environment[_name_variable(f"{name}_{key}")]
                for key in AUTH_PROXY_HEADERS_SPEC
                if _name_variable(f"{name}_{key}") in environment
            }
        elif value is None:
            value = environment.get(_name_variable(name)) or environment.get(_name_variable(true_name))
        if value not in (None, "", {}, []):
            found[name] = value
    return found


def _name_variable(name: str) -> str:
    return f"K8S_AUTH_{name.upper()}"


def _describe_origin(name: str) -> str:
    """Return the environment variable that may have set an option, for a message: ``(K8S_AUTH_HOST)`` after a blank."""
    names = [_name_variable(true_name) for true_name, own in AUTH_ARG_MAP.items() if own == name] or [
        _name_variable(name)
    ]
    return f" ({names[0]})"


def server_of_pod(environment: Environment) -> str:
    """Return the URL of the API server for the service account of a pod. Return an empty string if the environment does
    not define it.
    """
    host, port = (environment.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not port:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _convert_to_text(value: typing.Any) -> str:
    return value if isinstance(value, str) else ""


def _in_pod() -> bool:
    try:
        load_incluster_config(client_configuration=Configuration())
    except ConfigException:
        return False
    return True


def describe_kubeconfig(path: typing.Any) -> str:
    """Return the path of a kubeconfig as file name and folder, or several paths joined by ``and``. The literal value is
    not used, because Ansible masks it: it may be a whole configuration. For such a value, return a note of its type.
    """
    if not isinstance(path, str):
        return "given as a mapping"
    if "\n" in path or len(path) > _MOST_OF_A_PATH:
        return "given as text, where a path or a mapping is expected"
    pairs = [os.path.split(os.path.abspath(os.path.expanduser(part))) for part in path.split(os.pathsep) if part]
    return " and ".join(f"{name} in {folder}" for folder, name in pairs)


def shown_url(url: typing.Any) -> str:
    """Return a URL without user name and password."""
    scheme, _user, rest = _split_url(str(url))
    return scheme + rest


def _split_url(url: str) -> tuple[str, str, str]:
    """Return three texts: the scheme with ``://``, the user name with its password, and the server with its path. The
    text need not be a valid URL. A missing component is empty."""
    scheme, mark, rest = url.rpartition("://")
    place, slash, path = rest.partition("/")
    user, _at, server = place.rpartition("@")
    return scheme + mark, user, server + slash + path


def _examine(path: str, where: str, by: str) -> None:
    """Verify that a kubeconfig is readable YAML of kind Config before it is used. Several paths are permitted, as for
    kubectl, and at least one of the files must exist.

    :param path: path, or several paths as in KUBECONFIG
    :param where: source of the credentials, for the error message
    :param by: description of the variable or option that sets the path
    :raises ApiError: no file exists, or a file is not a kubeconfig. The error does not quote its content, which
        contains secrets
    """
    present = [part for part in map(os.path.expanduser, path.split(os.pathsep)) if part and os.path.exists(part)]
    if not present:
        remedy = f"Set the path of an existing kubeconfig: {_ANOTHER[by]}"
        if by == _BY_OPTION and not os.path.isabs(os.path.expanduser(path)):
            remedy = f"{remedy}, with its absolute path. Modules read a relative one from the folder of the playbook"
        raise ApiError(0, CONFIGURATION, "the file does not exist", where, remedy)
    for part in present:
        try:
            with open(part, encoding="utf-8") as file:
                config = yaml.safe_load(file)
        except yaml.MarkedYAMLError as error:
            line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
            raise ApiError(0, CONFIGURATION, f"the file is not valid YAML{line}: {error.problem}", where) from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise ApiError(0, CONFIGURATION, "the file is not UTF-8 text", where) from None
        except OSError as error:
            raise ApiError(0, CONFIGURATION, f"the file could not be read: {error.strerror}", where) from None
        if isinstance(config, str) and config.startswith("$ANSIBLE_VAULT"):
            text = (
                "it is encrypted by Ansible Vault; give it as a mapping: \"{{ lookup('ansible.builtin.file', path) |"
                ' from_yaml }}"'
            )
            raise ApiError(0, CONFIGURATION, text, where)
        if not isinstance(config, dict) or config.get("kind", "Config") != "Config":
            raise ApiError(
                0,
                CONFIGURATION,
                f"the file {'is empty' if config is None else 'contains other data'}; a mapping of kind Config is"
                " required",
                where,
            )


def make_kubeconfig(
    configuration: typing.Any, headers: typing.Mapping[str, str], context: str
) -> dict[str, typing.Any]:
    """Return the content of a kubeconfig with the credentials of a client, including secrets. It is for a tool that can
    only read kubeconfigs.

    :param configuration: a kubernetes.client.Configuration
    :param headers: headers that the client adds to each request, by name
    :param context: name of the only context
    """
    cluster: dict[str, typing.Any] = {"server": configuration.host}
    if not configuration.verify_ssl:
        # client-go refuses a certificate authority beside it
        cluster["insecure-skip-tls-verify"] = True
    elif configuration.ssl_ca_cert:
        cluster["certificate-authority-data"] = _encode_file(configuration.ssl_ca_cert)
    if getattr(configuration, "tls_server_name", None):
        cluster["tls-server-name"] = configuration.tls_server_name
    if configuration.proxy and not should_bypass_proxies(configuration.host, no_proxy=configuration.no_proxy or ""):
        cluster["proxy-url"] = _add_user(configuration.proxy, configuration.proxy_headers or {})
    entry = {"name": context, "context": {"cluster": context, "user": context}}
    user = {"name": context, "user": {**_user(configuration), **_read_impersonation(headers)}}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [user],
        "contexts": [entry],
        "current-context": context,
    }


def _user(configuration: typing.Any) -> dict[str, typing.Any]:
    user: dict[str, typing.Any] = {}
    for key, path in (
        ("client-certificate-data", configuration.cert_file),
        ("client-key-data", configuration.key_file),
    ):
        if path:
            user[key] = _encode_file(path)
    # also calls the hook that renews a token
    kind, _blank, value = (configuration.auth_settings().get("BearerToken", {}).get("value") or "").partition(" ")
    if kind.lower() == "basic":
        user["username"], _colon, user["password"] = base64.b64decode(value).decode().partition(":")
    elif value:
        user["token"] = value
    elif configuration.username and configuration.password:
        user.update(username=configuration.username, password=configuration.password)
    return user


def _read_impersonation(headers: typing.Mapping[str, str]) -> dict[str, typing.Any]:
    """Return the impersonation settings of a kubeconfig user from request headers. kubernetes.core writes one header
    for each group.
    """
    found: dict[str, typing.Any] = {}
    for name, value in headers.items():
        if str(name).lower() == "impersonate-user":
            found["as"] = value
        elif str(name).lower() == "impersonate-group":
            found.setdefault("as-groups", []).append(value)
    return found


def _add_user(proxy: str, headers: typing.Mapping[str, str]) -> str:
    kind, _blank, value = headers.get("proxy-authorization", "").partition(" ")
    parts = urllib.parse.urlsplit(proxy)
    if kind != "Basic" or "@" in parts.netloc:
        return proxy
    user, _colon, password = base64.b64decode(value).decode().partition(":")
    quoted = f"{urllib.parse.quote(user, safe='')}:{urllib.parse.quote(password, safe='')}"
    return urllib.parse.urlunsplit(parts._replace(netloc=f"{quoted}@{parts.netloc}"))


def _encode_file(path: str) -> str:
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()
