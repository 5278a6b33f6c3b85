# SPDX-License-Identifier: GPL-3.0-or-later

"""As much of AWX's API as the modules of awx.awx ask for: lists that are filtered, objects, what is associated with
them, surveys and approvals.

It keeps what it is given and judges none of it: that AWX takes it is not shown by this.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
import typing
import urllib.parse

Item = dict[str, typing.Any]

TOKEN = "token-of-a-test"
_API = "/api/v2/"
_ASSOCIATED = re.compile(r"([a-z_]+)/(\d+)/(\w+)")
#: what goes with an object that is deleted: the kind, and the field that names it
_CASCADE = {
    "inventories": (("inventory_sources", "inventory"),),
    "workflow_job_templates": (
        ("workflow_job_template_nodes", "workflow_job_template"),
        ("schedules", "unified_job_template"),
    ),
    "job_templates": (("schedules", "unified_job_template"), ("workflow_job_template_nodes", "unified_job_template")),
}
_UNIFIED = ("job_templates", "workflow_job_templates", "projects", "inventory_sources")


class AwxServer:
    """:ivar items: by kind, as the API names it, and by id
    :ivar surveys: by path of the template
    :ivar links: by path of the association, ids
    :ivar writes: how many requests changed something
    """

    def __init__(self) -> None:
        self.items: dict[str, dict[int, Item]] = {}
        self.surveys: dict[str, Item] = {}
        self.links: dict[str, list[int]] = {}
        self.writes = 0
        self._last = 0
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, kind: str, /, **fields: typing.Any) -> Item:
        self._last += 1
        path = f"{_API}{kind}/{self._last}/"
        item = {
            **fields,
            "id": self._last,
            "url": path,
            "type": kind.rstrip("s"),
            "related": {"survey_spec": f"{path}survey_spec/"},
        }
        self.items.setdefault(kind, {})[self._last] = item
        return item

    def named(self, kind: str, name: str) -> Item:
        """The one object of that name or identifier."""
        (found,) = [
            item for item in self.items.get(kind, {}).values() if name in (item.get("name"), item.get("identifier"))
        ]
        return found

    def linked(self, kind: str, name: str, what: str) -> list[str]:
        """Names of what is associated with an object."""
        ids = self.links.get(f"{kind}/{self.named(kind, name)['id']}/{what}", [])
        everything = {number: item for items in self.items.values() for number, item in items.items()}
        return [everything[number].get("name") or everything[number]["identifier"] for number in ids]

    def get(self, path: str, query: typing.Mapping[str, str]) -> Item:
        number = re.fullmatch(r"([a-z_]+)/(\d+)", path)
        if path.endswith("/survey_spec"):
            return self.surveys.get(path, {})
        if number:
            return self.items[number[1]][int(number[2])]
        associated = _ASSOCIATED.fullmatch(path)
        if associated and associated[1] == "workflow_approval_templates":
            raise LookupError(path)
        if associated:
            return _page([{"id": found} for found in self.links.get(path, [])])
        kinds = _UNIFIED if path == "unified_job_templates" else (path,)
        return _page([item for kind in kinds for item in self.items.get(kind, {}).values() if _fits(item, query)])

    def post(self, path: str, data: Item) -> tuple[int, Item]:
        self.writes += 1
        associated = _ASSOCIATED.fullmatch(path)
        if path.endswith("/survey_spec"):
            self.surveys[path] = data
            return 200, {}
        if associated and associated[3] == "create_approval_template":
            made = self.add("workflow_approval_templates", **data)
            self.items[associated[1]][int(associated[2])]["related"]["unified_job_template"] = made["url"]
            return 201, made
        if associated:
            ids = self.links.setdefault(path, [])
            (ids.remove if data.get("disassociate") else ids.append)(data["id"])
            return 204, {}
        return 201, self.add(path, **data)

    def patch(self, path: str, data: Item) -> Item:
        self.writes += 1
        item = self.get(path, {})
        item.update(data)
        return item

    def delete(self, path: str) -> None:
        self.writes += 1
        if path.endswith("/survey_spec"):
            self.surveys.pop(path, None)
            return
        kind, number = path.split("/")
        del self.items[kind][int(number)]
        for other, field in _CASCADE.get(kind, ()):
            self.items[other] = {
                key: item for key, item in self.items.get(other, {}).items() if item.get(field) != int(number)
            }


def _page(items: list[Item]) -> Item:
    return {"count": len(items), "next": None, "previous": None, "results": items}


def _fits(item: Item, query: typing.Mapping[str, str]) -> bool:
    either = {name[len("or__") :]: value for name, value in query.items() if name.startswith("or__")}
    others = {name: value for name, value in query.items() if not name.startswith("or__")}
    fits_either = not either or any(str(item.get(name)) == value for name, value in either.items())
    return fits_either and all(str(item.get(name)) == value for name, value in others.items())


def _handler(awx: AwxServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        # an answer is one packet: in two, each request waits for the kernel's acknowledgement
        wbufsize = -1

        def log_message(self, *arguments: typing.Any) -> None:
            """Not into the output of the tests."""

        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            try:
                self._answer(200, awx.get(self._path(), dict(urllib.parse.parse_qsl(parts.query))))
            except LookupError:
                self._answer(404, {"detail": "Not found."})

        def do_POST(self) -> None:
            self._answer(*awx.post(self._path(), self._data()))

        def do_PATCH(self) -> None:
            self._answer(200, awx.patch(self._path(), self._data()))

        def do_DELETE(self) -> None:
            awx.delete(self._path())
            self._answer(200 if self.path.endswith("survey_spec/") else 204, None)

        def _path(self) -> str:
            return urllib.parse.urlsplit(self.path).path[len(_API) :].strip("/")

        def _data(self) -> Item:
            data: Item = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            return data

        def _answer(self, code: int, data: typing.Optional[Item]) -> None:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                code, data = 401, {"detail": "Authentication credentials were not provided."}
            body = b"" if data is None else json.dumps(data).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-API-Product-Name", "AWX")
            self.send_header("X-API-Product-Version", "24.6.1")
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

    return Handler
