# SPDX-License-Identifier: GPL-3.0-or-later

"""Query registries over HTTPS for the existence of images, many at a time and within a time limit. No image is pulled.

A slow registry does not delay other registries, because each registry has separate threads. A registry that cannot be
reached is not queried again.
"""

from __future__ import annotations

import dataclasses
import http.client
import ssl
import threading
import time
import typing
import urllib.parse

from ...._model.base.errors import RdmaError
from ...._model.base.text import cut_plain
from ...._model.intent.mirror import State
from ...._model.kubernetes.images.registry import Challenge, Logins, RegistryLogin, find_login
from ...._parse.kubernetes.images import parse_reference
from ...._parse.kubernetes.resource import ResourceError
from ...._parse.registry import parse_challenge, parse_tags, token_of
from ...http_response import BoundedResponse

#: seconds in which a connection must give a sign
PATIENCE = 10.0
#: connections to one registry
_AT_ONCE = 8
#: of an answer, in bytes: lists of tags are long
_MOST = 8 << 20
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
#: answers that name another place
_ELSEWHERE = (301, 302, 303, 307, 308)
#: the registry of Docker answers under another name
_HOSTS = {"docker.io": "registry-1.docker.io"}


@dataclasses.dataclass(frozen=True)
class RegistryQuery:
    """An image whose existence in its registry is queried.

    :ivar name: ``registry/path`` with its tag or digest
    :ivar by_system: whether a tag with a suffix behind this tag and a hyphen, such as the name of an operating system,
        also counts
    """

    name: str
    by_system: bool = False


@dataclasses.dataclass(frozen=True)
class RegistryReply:
    state: State
    words: str = ""


class _Silent(RdmaError):
    """Raised if a registry does not answer, or if its answer does not show whether it has the image.

    :ivar dead: whether no connection to the registry could be opened, so that it is not queried again
    """

    def __init__(self, seen: str, dead: bool = False) -> None:
        super().__init__(seen)
        self.dead = dead


def ask(
    images: typing.Sequence[RegistryQuery], logins: Logins, authority: str, limit: float
) -> dict[RegistryQuery, RegistryReply]:
    """Query registries for images, without pulling them. Return the reply for each image: the registry has it
    (``there``) or not (``missing``), refuses the credentials (``refused``), or gave no usable answer (``silent``), with
    the reason.

    :param images: images to query
    :param logins: credentials, by registry or repository
    :param authority: file with the certificates to trust instead of those of the system; empty for those of the system
    :param limit: limit in seconds for all queries. Images without an answer by then get the state ``silent``
    :raises RdmaError: the file with the certificates cannot be read
    """
    try:
        trust = ssl.create_default_context(cafile=authority or None)
    except (OSError, ValueError) as error:
        raise RdmaError(
            f"{authority} contains no usable certificate: {error}",
            "Set operators_registry_ca to a file in PEM format",
        ) from error
    work = _Work(logins, trust, limit)
    by_host: dict[str, list[RegistryQuery]] = {}
    for image in dict.fromkeys(images):
        by_host.setdefault(image.name.partition("/")[0], []).append(image)
    for open_images in by_host.values():
        dead: list[str] = []
        for _number in range(min(_AT_ONCE, len(open_images))):
            # a daemon: what still waits for an answer must not keep the module alive
            threading.Thread(target=work.through, args=(open_images, dead), daemon=True).start()
    return work.wait(set(images))


class _Work:
    def __init__(self, logins: Logins, trust: ssl.SSLContext, limit: float) -> None:
        self._logins, self._trust, self._limit = logins, trust, limit
        self._end = time.monotonic() + limit
        self._said: dict[RegistryQuery, RegistryReply] = {}
        self._changed = threading.Condition()

    def through(self, images: list[RegistryQuery], dead: list[str]) -> None:
        """Query the images of one registry one after the other, until no image is left or the time is over. Several
        threads may do this for the same registry.

        :param images: images that are not queried yet, shared by these threads. Each thread removes the image that it
            queries
        :param dead: errors of the registry, shared by all threads for it. If there is one, the registry cannot be
            reached and is not queried
        """
        while True:
            with self._changed:
                if not images or time.monotonic() > self._end:
                    return
                image, why = images.pop(0), dead[0] if dead else ""
            said = RegistryReply("silent", why) if why else self._look_up_image(image, dead)
            with self._changed:
                self._said[image] = said
                self._changed.notify_all()

    def _look_up_image(self, image: RegistryQuery, dead: list[str]) -> RegistryReply:
        try:
            return _Registry(image, self._logins, self._trust, self._end).read()
        except _Silent as error:
            if error.dead:
                dead.append(error.seen)
            return RegistryReply("silent", error.seen)
        except (RdmaError, ResourceError) as error:
            return RegistryReply("silent", error.seen)
        # it must be told where somebody waits for it, whatever a registry made of HTTP
        except Exception as error:
            return RegistryReply("silent", f"{type(error).__name__} in the response of the registry")

    def wait(self, images: typing.Collection[RegistryQuery]) -> dict[RegistryQuery, RegistryReply]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._said) >= len(images), max(0.0, self._end - time.monotonic()))
            late = RegistryReply("silent", f"no response within {self._limit:g} s")
            return {image: self._said.get(image, late) for image in images}


class _Registry:
    """The query of one image at its registry, with the credentials, the certificates to trust and the deadline."""

    def __init__(self, image: RegistryQuery, logins: Logins, trust: ssl.SSLContext, end: float) -> None:
        name = parse_reference(image.name)
        self._image, self._version = image, name.version
        self._host, self._path = name.host, name.repository[len(name.host) + 1 :]
        self._login = find_login(name.repository, logins)
        self._trust, self._end = trust, end

    def read(self) -> RegistryReply:
        if not self._image.by_system:
            status, _headers, _text = self._request_with_login("HEAD", f"/v2/{self._path}/manifests/{self._version}")
            return self._judge_http_status(status)
        status, _headers, text = self._request_with_login("GET", f"/v2/{self._path}/tags/list?n=10000")
        if status != 200:
            return self._judge_http_status(status)
        found = [tag for tag in parse_tags(text) if tag.startswith(f"{self._version}-")]
        return (
            RegistryReply("there", ", ".join(found[:5]))
            if found
            else RegistryReply("missing", f"no tag that begins with {self._version}-")
        )

    def _judge_http_status(self, status: int) -> RegistryReply:
        who = (
            "the user in the file of users"
            if self._login
            else ("no user, because the file of users has no entry for this registry")
        )
        if status == 200:
            return RegistryReply("there")
        if status == 404:
            return RegistryReply("missing", "not found (404)")
        if status in (401, 403):
            return RegistryReply("refused", f"HTTP {status} for {who}")
        return RegistryReply("silent", f"HTTP {status}")

    def _request_with_login(self, method: str, path: str) -> tuple[int, http.client.HTTPMessage, str]:
        answer = self._send_request(self._host, method, path, "")
        if answer[0] in _ELSEWHERE:
            return self._follow_redirect(method, path, answer[1].get("Location") or "")
        if answer[0] != 401:
            return answer
        asked = parse_challenge(answer[1].get("WWW-Authenticate") or "")
        if asked is None:
            return answer
        authorization = self._build_authorization(asked)
        return self._send_request(self._host, method, path, authorization) if authorization else answer

    def _follow_redirect(self, method: str, path: str, location: str) -> tuple[int, http.client.HTTPMessage, str]:
        """Send a request again to the address to which a registry redirects it, without credentials. Return the HTTP
        status, the headers and the body of the answer.

        :param method: HTTP method of the request
        :param path: path of the first request
        :param location: header ``Location`` of the answer
        :raises _Silent: the address is not a valid HTTPS address, or does not answer before the deadline
        """
        place = urllib.parse.urlsplit(urllib.parse.urljoin(f"https://{self._host}{path}", location))
        if (
            place.scheme != "https"
            or not place.netloc
            or place.username is not None
            or any(sign <= " " for sign in location)
        ):
            raise _Silent(f"the registry redirects to {cut_plain(location, 100)}, which is not an https address")
        return self._send_request(
            place.netloc, method, f"{place.path or '/'}{f'?{place.query}' if place.query else ''}", ""
        )

    def _build_authorization(self, asked: Challenge) -> str:
        login = self._login or RegistryLogin()
        if asked.scheme == "basic":
            return f"Basic {login.basic}" if login.basic else ""
        realm = urllib.parse.urlsplit(asked.realm)
        if (
            realm.scheme != "https"
            or not realm.netloc
            or realm.username is not None
            or any(sign <= " " for sign in asked.realm)
        ):
            raise _Silent(
                f"its token server is at {cut_plain(asked.realm, 100)}, which is not an https address, so no"
                " password is sent"
            )
        scope = asked.scope or f"repository:{self._path}:pull"
        query = [("service", asked.service)] if asked.service else []
        body = ""
        if login.token:
            body = urllib.parse.urlencode(
                [
                    *query,
                    ("scope", scope),
                    ("grant_type", "refresh_token"),
                    ("refresh_token", login.token),
                    ("client_id", "linerate"),
                ]
            )
        path = realm.path or "/"
        path += (
            ""
            if body
            else f"?{'&'.join(filter(None, (realm.query, urllib.parse.urlencode([*query, ('scope', scope)]))))}"
        )
        basic = f"Basic {login.basic}" if login.basic and not body else ""
        status, _headers, text = self._send_request(realm.netloc, "POST" if body else "GET", path, basic, body)
        if status in (400, 401, 403):
            # the registry's own refusal says the rest
            return ""
        if status != 200:
            raise _Silent(f"its token server responds with HTTP status {status}")
        return f"Bearer {token_of(text)}"

    def _send_request(
        self, host: str, method: str, path: str, authorization: str, body: str = ""
    ) -> tuple[int, http.client.HTTPMessage, str]:
        left = min(PATIENCE, self._end - time.monotonic())
        if left <= 0:
            raise _Silent("it was not queried because the time limit was reached")
        headers = {"Accept": _MANIFESTS if method == "HEAD" else "application/json", "User-Agent": "linerate.rdma"}
        headers.update({"Authorization": authorization} if authorization else {})
        headers.update({"Content-Type": "application/x-www-form-urlencoded"} if body else {})
        connection = http.client.HTTPSConnection(_HOSTS.get(host, host), timeout=left, context=self._trust)
        connection.response_class = BoundedResponse
        try:
            try:
                connection.connect()
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise _Silent(f"no connection to {host}: {cut_plain(_format_error(error), 300)}", dead=True) from error
            connection.request(method, path, body=body or None, headers=headers)
            answer = connection.getresponse()
            text = "" if method == "HEAD" else answer.read(_MOST).decode("utf-8", "replace")
            return answer.status, answer.headers, text
        except (OSError, http.client.HTTPException) as error:
            raise _Silent(f"{host} did not respond: {cut_plain(_format_error(error), 300)}") from error
        finally:
            connection.close()


def _format_error(error: BaseException) -> str:
    return str(error) or type(error).__name__
