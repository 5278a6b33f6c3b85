# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster that is played over HTTP, with a DaemonSet controller, kubelets and an admission, so that observers come,
stay away, and go."""

from __future__ import annotations

import json
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of

from .fake_api import FakeApi, Resource

NAMESPACE = "linerate-observers"
IMAGE = "registry.example/rdma-tools@sha256:" + "2c26b46b68ffc68ff99b453c1d304134" * 2
IN_NAMESPACE = ("ServiceAccount", "Role", "RoleBinding", "DaemonSet", "Pod", "Event")

#: what the API server says to the DaemonSet's controller when it refuses its pods
SCC = (
    'Error creating: pods "linerate-observer-" is forbidden: unable to validate against any security context'
    ' constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount, provider restricted-v2:'
    " .spec.securityContext.hostNetwork: Invalid value: true: Host network is not allowed to be used, provider"
    ' "privileged": Forbidden: not usable by user or serviceaccount]'
)
POD_SECURITY = (
    'Error creating: pods "linerate-observer-ghjw9" is forbidden: violates PodSecurity "baseline:latest": host'
    ' namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volume "host"), privileged (container "observer"'
    " must not set securityContext.privileged=true)"
)
QUOTA = (
    'Error creating: pods "linerate-observer-7x2lq" is forbidden: exceeded quota: compute, requested:'
    " limits.memory=512Mi, used: limits.memory=64Gi, limited: limits.memory=64Gi"
)
SCOPES = (
    "Error creating: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical"
    " system-cluster-critical]}]"
)
PRIORITY = (
    'Error creating: pods "linerate-observer-" is forbidden: no PriorityClass with name fabric-critical was found'
)
WEBHOOK = (
    'Error creating: admission webhook "validate.kyverno.svc-fail" denied the request: resource Pod/linerate-observers/'
    " was blocked due to host-path"
)


def node(name: str, ready: bool = True, **labels: str) -> Resource:
    condition = {
        "type": "Ready",
        "status": "True" if ready else "Unknown",
        "message": "" if ready else "Kubelet stopped posting node status.",
    }
    shown = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name, **labels}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": shown},
        "spec": {},
        "status": {"conditions": [condition]},
    }


def running(name: str = "") -> Resource:
    status = {"name": "observer", "ready": True, "restartCount": 0, "imageID": IMAGE, "state": {"running": {}}}
    return {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
        "containerStatuses": [status],
    }


def waiting(reason: str, message: str) -> Resource:
    status = {
        "name": "observer",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": reason, "message": message}},
    }
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
    return {"phase": "Pending", "conditions": conditions, "containerStatuses": [status]}


def pending(message: str) -> Resource:
    return {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}],
    }


def ended(reason: str, message: str) -> Resource:
    return {"phase": "Failed", "reason": reason, "message": message}


def event(
    kind: str, name: str, reason: str, message: str, time: str = "2026-01-02T03:04:05Z", uid: str = ""
) -> Resource:
    metadata = {"name": f"{name}.{reason}.{time}".lower().replace(":", "-"), "namespace": NAMESPACE}
    about = {
        "kind": kind,
        "name": name,
        "uid": uid or f"uid-of-{name.removeprefix('linerate-observer-')}",
        "namespace": NAMESPACE,
    }
    return {
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": "Warning",
        "lastTimestamp": time,
    }


class World(FakeApi):
    """:ivar stand: status of each node's pod, unless it runs; None: no pod is made
    :ivar refusal: of all pods, in the words of the API server
    :ivar lingers: how many more times the namespace is shown after its deletion
    :ivar refuses: kinds that the API server refuses, with its words
    :ivar resources: of the API, as it tells them, by which the observers' namespace is looked through before it is
        deleted
    :ivar asked: verb, kind and namespace of each request, as RBAC names them
    """

    def __init__(self, *nodes: Resource, openshift: bool = False) -> None:
        super().__init__()
        self.stand: dict[str, typing.Optional[Resource]] = {}
        self.refusal = ""
        self.lingers = 0
        self.refuses: dict[str, str] = {}
        self.asked: set[tuple[str, str, str]] = set()
        self.resources: list[Resource] = []
        self.on_pods: typing.Callable[[], None] = lambda: None
        self.serve("Node", nodes)
        self.serve("Namespace", [])
        self.serve("Lease", [], "default")
        self.have("", {"metadata": {"name": "version"}, "gitVersion": "v1.34.4"})
        if openshift:
            self.have("/apis", {"metadata": {"name": "security.openshift.io"}})
            tag = {
                "metadata": {"name": "tools:latest"},
                "image": {"dockerImageReference": IMAGE.replace("rdma-tools", "ocp-tools")},
            }
            self.serve("ImageStreamTag", [tag], "openshift")

    def have(self, path: str, item: Resource) -> None:
        self._objects.setdefault(path, {})[item["metadata"]["name"]] = item

    def all(self, kind: str, namespace: str = NAMESPACE) -> list[Resource]:
        return list(self._objects.get(path_of(kind, namespace), {}).values())

    def make_namespace(self, labels: typing.Mapping[str, str]) -> None:
        """As somebody else would."""
        self._happen(
            "/api/v1/namespaces",
            "ADDED",
            {"kind": "Namespace", "metadata": {"name": NAMESPACE, "uid": "before", "labels": dict(labels)}},
        )

    def object(self, path: str) -> typing.Optional[Resource]:
        if path.rpartition("/")[0] in self._objects:
            self._ask("get", path)
        found = super().object(path)
        if (
            found is not None
            and path == f"/api/v1/namespaces/{NAMESPACE}"
            and found["metadata"].get("deletionTimestamp")
        ):
            with self._news:
                self.lingers -= 1
                if self.lingers < 0:
                    self._happen("/api/v1/namespaces", "DELETED", found)
                    return None
        return found

    def listing(self, path: str) -> typing.Optional[bytes]:
        if path in ("/apis", "/api/v1"):
            return json.dumps({"groups": [], "resources": self.resources}).encode()
        if path in self._objects:
            self._ask("list", f"{path}/")
        elif path in {path_of(kind, NAMESPACE) for kind in IN_NAMESPACE}:
            # what is in a namespace that is not there is a list without items
            return json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode()
        return super().listing(path)

    def events(self, path: str, version: int, server: typing.Any) -> typing.Iterator[bytes]:
        self._ask("watch", f"{path}/")
        return super().events(path, version, server)

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        self._ask(
            {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method],
            f"{path}/" if method == "POST" else path,
        )
        if method == "PATCH":
            # the API server asks for both where the object is not there
            self._ask("create", path)
        words = self.refuses.get(str(body.get("kind"))) if method in ("PATCH", "POST") else None
        if words:
            return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": words}
        found = super().object(path) if method == "PATCH" and "kind" not in body else None
        if found is not None:
            # a merge patch, as labels are written by one
            labels = {**found["metadata"].get("labels", {}), **body["metadata"].get("labels", {})}
            metadata = {
                **found["metadata"],
                **body["metadata"],
                "labels": {key: value for key, value in labels.items() if value is not None},
            }
            body = {**found, "metadata": metadata}
        return super().write(method, path, body, dry_run)

    def remove(self, path: str, item: Resource) -> None:
        if path == "/api/v1/namespaces":
            super()._happen(
                path,
                "MODIFIED",
                {**item, "metadata": {**item["metadata"], "deletionTimestamp": "2026-01-02T03:04:05Z"}},
            )
        else:
            super().remove(path, item)

    def _ask(self, verb: str, path: str) -> None:
        """:param path: of an object, or of a list with a slash behind it"""
        folder, _slash, name = path.rpartition("/")
        parts = folder.strip("/").split("/")
        inside = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else ""
        # a namespace is in itself
        self.asked.add((verb, parts[-1], name if parts[-1] == "namespaces" else inside))

    def _happen(self, path: str, action: str, item: Resource) -> None:
        if path == "/api/v1/namespaces":
            self._of_namespace(action, item["metadata"]["name"])
        if path.endswith("/daemonsets") and action != "DELETED":
            before = self._objects[path].get(item["metadata"]["name"], {})
            generation = before.get("metadata", {}).get("generation", 0) + (before.get("spec") != item.get("spec"))
            item = {
                **item,
                "metadata": {**item["metadata"], "generation": generation},
                "status": {"observedGeneration": generation},
            }
        super()._happen(path, action, item)
        if path.endswith("/daemonsets"):
            self._control(item if action != "DELETED" else None)

    def _of_namespace(self, action: str, name: str) -> None:
        if action == "ADDED":
            for kind in IN_NAMESPACE:
                self.serve(kind, [], name)
        elif action == "DELETED":
            for path in [path for path in self._objects if f"/namespaces/{name}/" in path]:
                for item in list(self._objects[path].values()):
                    super()._happen(path, "DELETED", item)
                del self._objects[path]

    def _control(self, daemon: typing.Optional[Resource]) -> None:
        """What the DaemonSet's controller, the scheduler and the kubelets make of it."""
        pods, events = f"/api/v1/namespaces/{NAMESPACE}/pods", f"/api/v1/namespaces/{NAMESPACE}/events"
        template = daemon["spec"]["template"] if daemon else {}
        for pod in list(self._objects[pods].values()):
            if pod["metadata"]["annotations"] != template.get("metadata", {}).get("annotations"):
                super()._happen(pods, "DELETED", pod)
        if daemon is None:
            return
        if self.refusal:
            super()._happen(
                events,
                "ADDED",
                event("DaemonSet", "linerate-observer", "FailedCreate", self.refusal, uid=daemon["metadata"]["uid"]),
            )
            return
        for item in list(self._objects["/api/v1/nodes"].values()):
            name = item["metadata"]["name"]
            status = self.stand.get(name, running())
            if (
                status is not None
                and takes(template["spec"], item)
                and f"linerate-observer-{name}" not in self._objects[pods]
            ):
                super()._happen(pods, "ADDED", pod_of(name, template, status, daemon["metadata"]["uid"]))
        self.on_pods()


def takes(spec: Resource, item: Resource) -> bool:
    """Whether a node gets a pod of this template."""
    if any(item["metadata"]["labels"].get(key) != value for key, value in spec["nodeSelector"].items()):
        return False
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or item["metadata"]["name"] in {
        name for term in required["nodeSelectorTerms"] for name in term["matchFields"][0]["values"]
    }


def pod_of(name: str, template: Resource, status: Resource, daemon: str = "uid-of-the-set") -> Resource:
    """A pod for one node, as the controller makes it.

    :param daemon: uid of the DaemonSet
    """
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}
        }
    }
    scheduled = (
        any(item["type"] == "PodScheduled" and item["status"] == "True" for item in status.get("conditions", []))
        or status["phase"] == "Failed"
    )
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "linerate-observer",
        "uid": daemon,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        **template["metadata"],
        "name": f"linerate-observer-{name}",
        "namespace": NAMESPACE,
        "uid": f"uid-of-{name}",
        "ownerReferences": [owner],
    }
    spec = {**template["spec"], "affinity": affinity, **({"nodeName": name} if scheduled else {})}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
