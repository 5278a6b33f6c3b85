# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server behind which OLM v0 is played: a catalog, its packages, and what OLM makes of a Subscription and of an
approval."""

from __future__ import annotations

import copy
import typing
import urllib.parse

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of

from .fake_api import FakeApi, Resource

SPACE, CATALOGS = "ops", "olm"
OPERATORS = "operators.coreos.com/v1alpha1"
#: our label
OURS = {"app.kubernetes.io/managed-by": "linerate.rdma"}
_KINDS = ("CatalogSource", "OperatorGroup", "Subscription", "InstallPlan", "ClusterServiceVersion")


def named(
    kind: str,
    name: str,
    namespace: str = SPACE,
    labels: typing.Optional[typing.Mapping[str, str]] = None,
    **parts: typing.Any,
) -> Resource:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": dict(labels or {})}
    return {"apiVersion": OPERATORS, "kind": kind, "metadata": metadata, **parts}


def catalog(state: str = "READY", name: str = "lab") -> Resource:
    return named(
        "CatalogSource",
        name,
        CATALOGS,
        spec={"sourceType": "grpc"},
        status={"connectionState": {"lastObservedState": state}} if state else {},
    )


def package(
    name: str = "nfd", channels: typing.Optional[typing.Mapping[str, typing.Sequence[str]]] = None, source: str = "lab"
) -> Resource:
    """:param channels: versions of each, the newest first; the first channel is the default"""
    channels = channels or {"stable": ["1.0.0"]}
    listed = [
        {
            "name": channel,
            "currentCSV": f"{name}.v{versions[0]}",
            "entries": [{"name": f"{name}.v{item}", "version": item} for item in versions],
        }
        for channel, versions in channels.items()
    ]
    status = {
        "catalogSource": source,
        "catalogSourceNamespace": CATALOGS,
        "defaultChannel": next(iter(channels)),
        "channels": listed,
    }
    return {"kind": "PackageManifest", "metadata": {"name": name, "namespace": "default"}, "status": status}


def group(
    name: str, targets: typing.Sequence[str] = (), labels: typing.Optional[typing.Mapping[str, str]] = None
) -> Resource:
    return named("OperatorGroup", name, labels=labels, spec={"targetNamespaces": list(targets)} if targets else {})


def version(
    name: str,
    phase: str = "Succeeded",
    reason: str = "",
    message: str = "",
    spec: typing.Optional[Resource] = None,
    **status: typing.Any,
) -> Resource:
    stem, _dot, number = name.partition(".v")
    install = {"spec": {"deployments": [{"name": f"{stem}-operator"}]}}
    whole = {"phase": phase, "reason": reason, "message": message, **status}
    return named(
        "ClusterServiceVersion", name, spec={"version": number, "install": install, **(spec or {})}, status=whole
    )


def plan(
    name: str,
    versions: typing.Sequence[str],
    phase: str = "RequiresApproval",
    approved: bool = False,
    **status: typing.Any,
) -> Resource:
    spec = {"approval": "Manual", "approved": approved, "clusterServiceVersionNames": list(versions)}
    return named("InstallPlan", name, spec=spec, status={"phase": phase, **status})


def subscription(
    name: str = "nfd",
    labels: typing.Optional[typing.Mapping[str, str]] = None,
    spec: typing.Optional[Resource] = None,
    **status: typing.Any,
) -> Resource:
    whole = {
        "name": name,
        "source": "lab",
        "sourceNamespace": CATALOGS,
        "channel": "stable",
        "installPlanApproval": "Manual",
        **(spec or {}),
    }
    return named("Subscription", name, labels=labels, spec=whole, status=status)


def condition(kind: str, reason: str, message: str) -> Resource:
    return {"type": kind, "status": "True", "reason": reason, "message": message}


class OlmWorld(FakeApi):
    """:ivar subscribed: what OLM makes of a Subscription that is written; the default resolves it into an InstallPlan
    :ivar approved: what it makes of an approval; the default installs each version of the plan
    :ivar tells: whether there are PackageManifests
    """

    def __init__(self, *packages: Resource, tells: bool = True) -> None:
        super().__init__()
        self.tells = tells
        self.packages = list(packages) or [package()]
        self.subscribed: typing.Callable[[Resource], None] = self.resolve
        self.approved: typing.Callable[[Resource], None] = self.install
        for kind in _KINDS:
            self.serve(kind, [])
            self.serve(kind, [], SPACE)
        self.serve("CatalogSource", [], CATALOGS)
        for kind in ("Namespace", "CustomResourceDefinition", "PackageManifest", "Pod"):
            self.serve(kind, [])
        for kind in ("RoleBinding", "ServiceAccount", "CatalogSource"):
            self.serve(kind, [], SPACE)
        for kind in ("Pod", "EndpointSlice", "Deployment"):
            self.serve(kind, [], SPACE)
            self.serve(kind, [], CATALOGS)
        self.serve("Lease", [], "default")
        self.serve("Node", [])
        self.have(catalog())

    def have(self, *items: Resource) -> None:
        """Objects that are there, or become what they are now."""
        for item in items:
            self.put(item["kind"], item, item["metadata"]["namespace"])

    def lose(self, item: Resource) -> None:
        self.drop(item["kind"], item, item["metadata"]["namespace"])

    def find(self, kind: str, name: str, namespace: str = SPACE) -> typing.Optional[Resource]:
        return self.object(path_of(kind, namespace, name))

    def at(self, kind: str, name: str, namespace: str = SPACE) -> Resource:
        found = self.find(kind, name, namespace)
        assert found is not None, f"no {kind} {namespace}/{name}"
        return found

    def names(self, kind: str) -> set[str]:
        return set(self._objects[path_of(kind)])

    # OLM

    def resolve(self, item: Resource) -> None:
        """The newest version of the channel, or the one to start with, by a plan of its own."""
        spec = item["spec"]
        found = next(entry for entry in self.packages if entry["metadata"]["name"] == spec["name"])
        channel = next(
            entry
            for entry in found["status"]["channels"]
            if entry["name"] == spec.get("channel", found["status"]["defaultChannel"])
        )
        name = spec.get("startingCSV", channel["currentCSV"])
        self.plans({item["metadata"]["name"]: name})

    def plans(self, wanted: typing.Mapping[str, str], *more: str) -> str:
        """One plan for Subscriptions and the versions that they go to; ``more`` is in it as well."""
        title = f"install-{'-'.join(wanted)}-{self._version}"
        self.have(plan(title, [*wanted.values(), *more]))
        for name, current in wanted.items():
            item = self.at("Subscription", name)
            pending = {
                "conditions": [condition("InstallPlanPending", "RequiresApproval", "")],
                "state": "UpgradePending",
            }
            status = {**item.get("status", {}), "currentCSV": current, "installPlanRef": {"name": title}, **pending}
            self.have({**item, "status": status})
        return title

    def install(self, item: Resource) -> None:
        """Each version of an approved plan."""
        for name in item["spec"]["clusterServiceVersionNames"]:
            self.have(version(name))
            self.installed(name)
        self.have({**item, "status": {"phase": "Complete"}})

    def installed(self, name: str) -> None:
        for item in list(self._objects[path_of("Subscription", SPACE)].values()):
            if item.get("status", {}).get("currentCSV") == name:
                self.have(
                    {
                        **item,
                        "status": {**item["status"], "installedCSV": name, "state": "AtLatestKnown", "conditions": []},
                    }
                )

    # the API server

    def object(self, path: str) -> typing.Optional[Resource]:
        if path == "/apis/operators.coreos.com":
            return {"kind": "APIGroup"}
        return super().object(path)

    def listing(self, path: str) -> typing.Optional[bytes]:
        if path == path_of("PackageManifest"):
            self._objects[path] = {str(number): item for number, item in enumerate(self.packages)}
            return super().listing(path) if self.tells else None
        return super().listing(path)

    def _happen(self, path: str, action: str, item: Resource) -> None:
        """What happens in a namespace happens in the list of all namespaces."""
        super()._happen(path, action, item)
        head, _namespaces, rest = path.partition("/namespaces/")
        everywhere = f"{head}/{rest.partition('/')[2]}"
        if rest and everywhere in self._objects:
            super()._happen(everywhere, action, item)

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if method == "PATCH" and "apiVersion" not in body:
            return self._merge(urllib.parse.unquote(path), body)
        there = self.object(path) if method == "PATCH" else None
        if there is not None and "annotations" in there["metadata"]:
            # of another field manager: an apply leaves it
            body = {**body, "metadata": {"annotations": there["metadata"]["annotations"], **body["metadata"]}}
        code, answer = super().write(method, path, body, dry_run)
        if method == "PATCH" and code == 201 and body["kind"] == "Subscription":
            self.subscribed(answer)
        return code, answer

    def _merge(self, path: str, body: Resource) -> tuple[int, Resource]:
        self.requests[f"merge {path}"] += 1
        item = copy.deepcopy(self.object(path))
        assert item is not None, path
        for part, values in body.items():
            item.setdefault(part, {}).update(values)
        self._happen(path.rpartition("/")[0], "MODIFIED", item)
        if item["kind"] == "InstallPlan":
            self.approved(item)
        else:
            self.subscribed(item)
        return 200, item

    def writes(self) -> list[str]:
        return [name for name in self.requests if name.partition(" ")[0] in ("patch", "merge", "post", "put", "delete")]
