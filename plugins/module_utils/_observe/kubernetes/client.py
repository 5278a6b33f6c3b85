# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin access to the API server: list, watch, apply, delete, run a command in a pod. What it says is parsed in _parse.

Paths are fixed for the few kinds that the collection works with: no discovery is needed, and a kind that the server
does not know is told from an object that is not there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import shlex
import time
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.base.operand import one_line, part_of_path
from ..._model.base.text import folded
from ..._model.boundary.form import shown
from ..._model.kubernetes.objects import CommandResult, Container
from ..._parse.kubernetes.core import status_message
from ..._parse.kubernetes.no_answer import UNTRUSTED, cause_of
from ..._parse.kubernetes.refusal import explain
from ..._parse.kubernetes.resource import NOT_READ, title_of
from ..._parse.limits import MIB, count_values, count_values_outside_strings, decode_answer, decode_json
from ..._parse.pods.framing import ERROR, STDOUT
from ..._parse.pods.shell import Stream
from .channels import Channels, Refused, Way

try:
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError
except ImportError:
    # the modules name the missing library before they come here
    class ApiException(Exception):  # type: ignore[no-redef]
        """Stands for that of the client."""

    class HTTPError(Exception):  # type: ignore[no-redef]
        """Stands for that of urllib3."""


Resource = dict[str, typing.Any]
Clock = typing.Callable[[], float]
#: whether an object counts, by its metadata
Choice = typing.Callable[[Resource], bool]
T = typing.TypeVar("T")
#: name of a kind in KINDS, or what stands there of one that only a custom resource definition tells
Kind = typing.Union[str, tuple[str, str, bool]]

#: kind: (path of its API, plural, namespaced). whereabouts and nv-ipam both have an IPPool, so their group stands
#: behind it, as kubectl writes it
KINDS: dict[str, tuple[str, str, bool]] = {
    "Namespace": ("/api/v1", "namespaces", False),
    "Node": ("/api/v1", "nodes", False),
    "Pod": ("/api/v1", "pods", True),
    "Event": ("/api/v1", "events", True),
    "ConfigMap": ("/api/v1", "configmaps", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles", True),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
    "SecurityContextConstraints": ("/apis/security.openshift.io/v1", "securitycontextconstraints", False),
    "ImageStreamTag": ("/apis/image.openshift.io/v1", "imagestreamtags", True),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases", True),
    "DaemonSet": ("/apis/apps/v1", "daemonsets", True),
    "Deployment": ("/apis/apps/v1", "deployments", True),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies", True),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets", True),
    "Service": ("/api/v1", "services", True),
    "ServiceCIDR": ("/apis/networking.k8s.io/v1", "servicecidrs", False),
    "Network.config.openshift.io": ("/apis/config.openshift.io/v1", "networks", False),
    "Image.config.openshift.io": ("/apis/config.openshift.io/v1", "images", False),
    "ImageDigestMirrorSet": ("/apis/config.openshift.io/v1", "imagedigestmirrorsets", False),
    "ImageTagMirrorSet": ("/apis/config.openshift.io/v1", "imagetagmirrorsets", False),
    "ImageContentSourcePolicy": ("/apis/operator.openshift.io/v1alpha1", "imagecontentsourcepolicies", False),
    "IPPool.whereabouts.cni.cncf.io": ("/apis/whereabouts.cni.cncf.io/v1alpha1", "ippools", True),
    "IPPool.nv-ipam.nvidia.com": ("/apis/nv-ipam.nvidia.com/v1alpha1", "ippools", True),
    "CIDRPool.nv-ipam.nvidia.com": ("/apis/nv-ipam.nvidia.com/v1alpha1", "cidrpools", True),
    "ClusterServiceVersion": ("/apis/operators.coreos.com/v1alpha1", "clusterserviceversions", True),
    "Subscription": ("/apis/operators.coreos.com/v1alpha1", "subscriptions", True),
    "CatalogSource": ("/apis/operators.coreos.com/v1alpha1", "catalogsources", True),
    "InstallPlan": ("/apis/operators.coreos.com/v1alpha1", "installplans", True),
    "OperatorGroup": ("/apis/operators.coreos.com/v1", "operatorgroups", True),
    "Operator": ("/apis/operators.coreos.com/v1", "operators", False),
    "PackageManifest": ("/apis/packages.operators.coreos.com/v1", "packagemanifests", True),
    "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices", True),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "NetworkAttachmentDefinition": ("/apis/k8s.cni.cncf.io/v1", "network-attachment-definitions", True),
    "NicClusterPolicy": ("/apis/mellanox.com/v1alpha1", "nicclusterpolicies", False),
    "NicNodePolicy": ("/apis/mellanox.com/v1alpha1", "nicnodepolicies", False),
    "NicDevice": ("/apis/configuration.net.nvidia.com/v1alpha1", "nicdevices", True),
    "NicConfigurationTemplate": ("/apis/configuration.net.nvidia.com/v1alpha1", "nicconfigurationtemplates", True),
    "MacvlanNetwork": ("/apis/mellanox.com/v1alpha1", "macvlannetworks", False),
    "IPoIBNetwork": ("/apis/mellanox.com/v1alpha1", "ipoibnetworks", False),
    "HostDeviceNetwork": ("/apis/mellanox.com/v1alpha1", "hostdevicenetworks", False),
    "SriovIBNetwork": ("/apis/sriovnetwork.openshift.io/v1", "sriovibnetworks", True),
    "SriovNetwork": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworks", True),
    "SriovNetworkNodePolicy": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworknodepolicies", True),
    "SriovNetworkNodeState": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworknodestates", True),
    "SriovNetworkPoolConfig": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworkpoolconfigs", True),
    "NodeFeatureDiscovery": ("/apis/nfd.openshift.io/v1", "nodefeaturediscoveries", True),
    "Kueue": ("/apis/kueue.openshift.io/v1", "kueues", False),
    "JobSetOperator": ("/apis/operator.openshift.io/v1", "jobsetoperators", False),
    "ClusterPolicy": ("/apis/nvidia.com/v1", "clusterpolicies", False),
    "NVIDIADriver": ("/apis/nvidia.com/v1alpha1", "nvidiadrivers", False),
    "MachineConfig": ("/apis/machineconfiguration.openshift.io/v1", "machineconfigs", False),
    "KubeletConfig": ("/apis/machineconfiguration.openshift.io/v1", "kubeletconfigs", False),
    "MachineConfigPool": ("/apis/machineconfiguration.openshift.io/v1", "machineconfigpools", False),
    "Machine.machine.openshift.io": ("/apis/machine.openshift.io/v1beta1", "machines", True),
    "MachineHealthCheck.machine.openshift.io": ("/apis/machine.openshift.io/v1beta1", "machinehealthchecks", True),
    "Machine.cluster.x-k8s.io": ("/apis/cluster.x-k8s.io/v1beta1", "machines", True),
    "MachineHealthCheck.cluster.x-k8s.io": ("/apis/cluster.x-k8s.io/v1beta1", "machinehealthchecks", True),
    "NodeHealthCheck": ("/apis/remediation.medik8s.io/v1alpha1", "nodehealthchecks", False),
    "Tuned": ("/apis/tuned.openshift.io/v1", "tuneds", True),
    "Profile": ("/apis/tuned.openshift.io/v1", "profiles", True),
    "PerformanceProfile": ("/apis/performance.openshift.io/v2", "performanceprofiles", False),
    "SelfSubjectAccessReview": ("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", False),
    "Job": ("/apis/batch/v1", "jobs", True),
    "StatefulSet": ("/apis/apps/v1", "statefulsets", True),
    "JobSet": ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets", True),
    "PyTorchJob": ("/apis/kubeflow.org/v1", "pytorchjobs", True),
    "MPIJob": ("/apis/kubeflow.org/v2beta1", "mpijobs", True),
    "TrainJob": ("/apis/trainer.kubeflow.org/v1alpha1", "trainjobs", True),
    "TrainingRuntime": ("/apis/trainer.kubeflow.org/v1alpha1", "trainingruntimes", True),
    "ClusterTrainingRuntime": ("/apis/trainer.kubeflow.org/v1alpha1", "clustertrainingruntimes", False),
    # v1beta2 came with release 0.15, and 0.19 serves both
    "LocalQueue": ("/apis/kueue.x-k8s.io/v1beta1", "localqueues", True),
    "ClusterQueue": ("/apis/kueue.x-k8s.io/v1beta1", "clusterqueues", False),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims", True),
    "ResourceClaimTemplate": ("/apis/resource.k8s.io/v1", "resourceclaimtemplates", True),
    "DeviceClass": ("/apis/resource.k8s.io/v1", "deviceclasses", False),
    "ResourceSlice": ("/apis/resource.k8s.io/v1", "resourceslices", False),
    "StorageClass": ("/apis/storage.k8s.io/v1", "storageclasses", False),
    "PersistentVolume": ("/api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "SriovOperatorConfig": ("/apis/sriovnetwork.openshift.io/v1", "sriovoperatorconfigs", True),
}

#: objects of one answer, where a kind may have many. It is asked for fewer where these are larger than a page may be
PAGE, FEWER = 500, 4
#: bytes of a page, and values in it. 500 nodes have 15 MB and 600,000 values, 500 pods less; the memory of so many
#: values is 100 to 250 MiB
MOST_PAGE, MOST_PAGE_VALUES = 32 * MIB, 1_000_000
#: values of a list that is held as a whole, and bytes: 5,000 nodes have 6,000,000 and 150 MB
MOST_HELD, MOST_HELD_BYTES = 8_000_000, 256 * MIB
#: values of an object, or bytes, with more than which it is left where a list of a kind in _PARTIAL becomes larger than
#: that: a node has 1,200 and 30 kB. Values of its metadata that are kept then
LARGE_VALUES, LARGE_BYTES, MOST_METADATA = 10_000, MIB // 4, 2_000
#: answers of one list. 5,000 nodes have 1,100 of their pods; etcd has room for 16,000 objects that fill an answer alone
MOST_PAGES = 20_000
#: lines of a log that are asked for, and bytes that are taken of it: the kubelet of the node sends it
LOG_LINES, MOST_LOG = 20_000, 16 * MIB
#: seconds that the kubelet may be silent over it, and that the whole of it may take
LOG_SILENCE, LOG_SECONDS = 10.0, 30.0
#: bytes of one object. etcd takes 1.5 MiB of what is asked to be written, and the event around it has a few more
MOST_OBJECT = 8 * MIB
#: bytes that a value has in an object as others make it, with the names around it. Text with more signs of values than
#: that has them in its strings
BYTES_OF_A_VALUE = 8
#: values in it: with their memory of 72 bytes each, they cost 16 MiB
MOST_VALUES = 16 * MIB // 72
#: bytes of an answer that no page divides: PackageManifests of all catalogs, which an admin adds, and what the API
#: server tells of itself
MOST_LIST = 768 * MIB
#: answers after which a list of so many objects at most ends, however few of them were chosen: 100,000 Events
MOST_PASSED = 200
#: seconds to connect, and to wait for an answer
TIMEOUT = (5.0, 30.0)
#: the server ends a watch after this; with bookmarks about once a minute, silence beyond the second figure means a dead
#: connection
WATCH_SECONDS, WATCH_SILENCE = 600, 90.0
#: seconds before the second attempt and the third one
PAUSES = (1.0, 3.0)
#: kinds that a server of its own has, which knows no pages: it answers with all objects whatever the limit is
_WHOLE = ("PackageManifest",)
#: kinds of which a node or a tenant writes some, and whose parsers know an object of which its metadata alone was read:
#: that one is judged by its name, and the others as if it were small
_PARTIAL = ("Node", "NicDevice", "SriovNetworkNodeState", "NetworkAttachmentDefinition")
#: metadata alone: what Secrets hold never comes here. A server that does not know the form sends whole objects
#: [kubernetes.io, API concepts]
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
#: reason of an answer that is larger than its limit; names of objects in a message
_TOO_LARGE, _NAMED = "TooLarge", 5
_SHRINK = (
    "Have who made such objects remove or shrink them (kubectl get -A -o json says how large each is), and run again"
)


class ApiError(RdmaError):
    """The API server refused, or could not be reached.

    :ivar status: HTTP status; 0 when there was no answer
    :ivar reason: of the API's Status: NotFound, Forbidden, Conflict, Expired...
    :ivar text: the server's own words
    :ivar causes: of the API's Status, such as DisruptionBudget
    :ivar retry_after: seconds after which the server wants to be asked again; 0 when it does not say
    """

    def __init__(
        self,
        status: int,
        reason: str,
        text: str,
        where: str,
        remedy: typing.Optional[str] = None,
        causes: tuple[str, ...] = (),
        retry_after: float = 0.0,
    ) -> None:
        """:param remedy: where it is another one than that of the status"""
        super().__init__(f"{where}: {text.rstrip('.')}", _remedy(status, text) if remedy is None else remedy)
        self.status = status
        self.reason = reason
        self.text = text
        self.where = where
        self.causes = causes
        self.retry_after = retry_after

    @property
    def absent(self) -> bool:
        return self.status == 404

    @property
    def too_large(self) -> bool:
        """Whether an answer was left for its size."""
        return self.reason == _TOO_LARGE

    @property
    def held(self) -> bool:
        """Whether a PodDisruptionBudget refuses an eviction. The API server says 429 of that too.
        [kubernetes pkg/registry/core/pod/storage/eviction.go, createTooManyRequestsError]
        """
        return self.status == 429 and ("DisruptionBudget" in self.causes or "disruption budget" in self.text.lower())

    @property
    def passing(self) -> bool:
        """Whether the same may be granted in a moment: the server, or the way from it to the node, is overloaded or
        starts anew."""
        text = self.text.lower()
        if "not found" in text:
            # in the image, in the pod: kubelets say 500 of it
            return False
        # konnectivity's words for a full channel to an agent come in whatever status
        full = "receive channel" in text and "full" in text
        return full or self.status == 429 or self.status >= 500 or (self.status == 0 and "connection refused" in text)


def _remedy(status: int, text: str) -> str:
    """What helps against what the server, or the way to it, says."""
    if status == 0 and any(words in text for words in UNTRUSTED):
        return (
            "The server is not the one that the kubeconfig trusts: take the certificate authority of this cluster, or"
            " the right server"
        )
    if status == 0:
        return "Check the kubeconfig (or the variables K8S_AUTH_*), and whether the API server runs"
    if status == 401:
        return (
            "The token or the client certificate in the kubeconfig is wrong or has expired: renew it, or what"
            " K8S_AUTH_* name"
        )
    if status == 403 and "admission webhook" not in text:  # a webhook's own refusal has another cause
        return "Give the user the rights of docs/rbac that the stage needs: linerate.rdma.validate names the files"
    cause = explain(text)
    return f"{cause.why} {cause.remedy}" if cause is not None else ""


def path_of(kind: Kind, namespace: str = "", name: str = "") -> str:
    """Path of an object, or of a list of them; of all namespaces when none is given.

    :raises OperandError: a name would be more than its part of the path
    """
    namespace, name = part_of_path(namespace), part_of_path(name)
    base, plural, namespaced = KINDS[kind] if isinstance(kind, str) else kind
    folder = f"{base}/namespaces/{namespace}/{plural}" if namespaced and namespace else f"{base}/{plural}"
    return f"{folder}/{name}" if name else folder


def group_of(kind: str) -> str:
    """API group of a kind. That of /api/v1 has no name."""
    base = KINDS[kind][0]
    return base.split("/")[2] if base.startswith("/apis/") else ""


def version_of(kind: str) -> str:
    """The apiVersion of a kind's objects, such as k8s.cni.cncf.io/v1."""
    return KINDS[kind][0].partition("/")[2].partition("/")[2]


def kind_of(definition: Resource) -> str:
    """The kind of an object as KINDS names it."""
    kind, group = str(definition["kind"]), str(definition.get("apiVersion", "")).partition("/")[0]
    return f"{kind}.{group}" if f"{kind}.{group}" in KINDS else kind


@dataclasses.dataclass(frozen=True)
class Listing:
    """:ivar version: resourceVersion from which a watch goes on"""

    items: tuple[Resource, ...]
    version: str


@dataclasses.dataclass(frozen=True)
class _Page:
    """:ivar values: in its text, and bytes of it"""

    items: tuple[Resource, ...]
    version: str
    values: int
    size: int

    def chosen(self, only: Choice) -> _Page:
        """The page with the objects alone that ``only`` takes."""
        items = tuple(filter(only, self.items))
        if len(items) == len(self.items):
            return self
        texts = [json.dumps(item) for item in items]
        return _Page(items, self.version, sum(map(count_values, texts)), sum(map(len, texts)))


class Cluster:
    """One API server."""

    def __init__(self, dynamic: typing.Any, guard: typing.Optional[typing.Callable[[], None]] = None) -> None:
        """:param dynamic: a DynamicClient of the kubernetes client (kubernetes.core's get_api_client makes one)
        :param guard: asked before anything is written; it raises what forbids that
        """
        self._dynamic = dynamic
        self._guard = guard
        self._way: typing.Optional[Way] = None

    def guarded(self, guard: typing.Callable[[], None]) -> Cluster:
        """The same API server, for whom ``guard`` is asked before anything is written."""
        return Cluster(self._dynamic, guard)

    def _call(
        self,
        method: str,
        path: str,
        query: typing.Sequence[tuple[str, str]] = (),
        body: typing.Any = None,
        **more: typing.Any,
    ) -> typing.Any:
        where = f"{method.upper()} {path}"
        if self._guard is not None and method != "get" and ("dryRun", "All") not in query:
            self._guard()
        options = {
            "serialize": False,
            "_request_timeout": TIMEOUT,
            "query_params": list(query),
            "header_params": {},
            **more,
        }
        try:
            return self._dynamic.request(method, path, body=body, **options)
        except ApiException as error:
            raise api_error(error, where) from error
        except (HTTPError, OSError) as error:
            raise ApiError(
                0, "Unreachable", f"no answer from the API server: {cause_of(str(error)) or error}", where
            ) from error

    def _json(
        self,
        method: str,
        path: str,
        query: typing.Sequence[tuple[str, str]] = (),
        body: typing.Any = None,
        **more: typing.Any,
    ) -> Resource:
        return _object(self._call(method, path, query, body, **more), f"{method.upper()} {path}")

    def version(self) -> str:
        """Of the API server, such as v1.34.4.

        :raises ApiError: no answer
        """
        return str(self._json("get", "/version").get("gitVersion") or "of unknown version")

    def serves(self, group: str) -> bool:
        """Whether the server knows an API group, such as security.openshift.io.

        :raises ApiError: any other refusal than that it does not
        """
        try:
            self._json("get", f"/apis/{group}")
        except ApiError as error:
            if not error.absent:
                raise
            return False
        return True

    def read(self, path: str) -> Resource:
        """What a path of the API has, such as the list of its resources.

        :raises ApiError: also when it is not there, or larger than a page of objects may be
        """
        where = f"GET {path}"
        return _decoded(_read_page(self._call("get", path), where)[0], 200, where)

    def get(self, kind: str, namespace: str, name: str) -> Resource:
        """:raises ApiError: also when it is not there"""
        return self._json("get", path_of(kind, namespace, name))

    def dated(self, kind: str, namespace: str, name: str) -> tuple[typing.Optional[Resource], str]:
        """An object, None when it is not there, and when the server says that this was: its header Date.

        :raises ApiError: any other refusal
        """
        path = path_of(kind, namespace, name)
        try:
            response = self._call("get", path)
            return _object(response, f"GET {path}"), str(response.headers.get("Date") or "")
        except ApiError as error:
            if not error.absent:
                raise
            return None, str((getattr(error.__cause__, "headers", None) or {}).get("Date") or "")

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        *,
        most: int = 0,
        only: typing.Optional[Choice] = None,
    ) -> Listing:
        """All objects of a kind. An item gets the kind, which the API leaves out in lists.

        :param selector: label selector; ``fields``: field selector
        :param most: objects that are asked for; fewer come where they are larger than a page may be, or where ``only``
            takes none in MOST_PASSED answers. 0 for all
        :param only: takes an object by its metadata. The others are not held, and may be of any number and size

        An object that is larger than a page may be comes as its metadata and ``NOT_READ``, if its kind is in _PARTIAL.
        So do the largest objects of such a kind where all of them together are more than may be held.

        :raises ApiError: with ``absent`` when the server does not know the kind
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        path = path_of(kind, namespace)
        if kind in _WHOLE:
            body, _values = _counted(self._call("get", path, chosen), f"GET {path}", "answer", MOST_LIST, MOST_HELD)
            data = _decoded(body, 200, f"GET {path}")
            return Listing(tuple(_items(kind, data, path)), _version_of(data))
        found: list[Resource] = []
        version, held, size = "", 0, 0
        pages = self._pages(kind, namespace, chosen, most=min(most, PAGE) or PAGE, only=only)
        for number, page in enumerate(pages, 1):
            version, held, size = version or page.version, held + page.values, size + page.size
            found += page.items
            if kind in _PARTIAL and (held > MOST_HELD or size > MOST_HELD_BYTES):
                found, held, size = _without_largest(found)
            if held > MOST_HELD or size > MOST_HELD_BYTES:
                first = f"those from {title_of(page.items[0])} on" if page.items else "the others"
                limit = f"{MOST_HELD} values" if held > MOST_HELD else f"{MOST_HELD_BYTES} bytes"
                raise ApiError(
                    200, _TOO_LARGE, f"all objects have more than {limit}; {first} are not read", f"GET {path}", _SHRINK
                )
            if most and (len(found) >= most or held > MOST_PAGE_VALUES or number >= MOST_PASSED):
                break
        return Listing(tuple(found[: most or None]), version)

    def pages(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        *,
        only: typing.Optional[Choice] = None,
    ) -> typing.Iterator[Resource]:
        """All objects of a kind, read in pages, so that not all of a large cluster is held at once.

        :param selector: label selector; ``fields``: field selector
        :param only: as of ``list``
        :raises ApiError: as ``list``. Of an object that is larger than a page may be, and whose kind is not in
            _PARTIAL: after all the others, with its name
        """
        chosen = [(name, value) for name, value in (("labelSelector", selector), ("fieldSelector", fields)) if value]
        for page in self._pages(kind, namespace, chosen, only=only):
            yield from page.items

    def metadata(self, kind: Kind, namespace: str, selector: str = "") -> typing.Iterator[Resource]:
        """The metadata of all objects of a kind, as ``pages`` reads them. What Secrets hold never comes here.

        :raises ApiError: as ``pages``
        """
        for page in self._pages(kind, namespace, [("labelSelector", selector)] if selector else [], METADATA):
            yield from page.items

    def _pages(
        self,
        kind: Kind,
        namespace: str,
        chosen: typing.Sequence[tuple[str, str]],
        accept: str = "",
        most: int = PAGE,
        only: typing.Optional[Choice] = None,
    ) -> typing.Iterator[_Page]:
        """Pages of as many objects as have room in one: who may make an object decides how large it is, and there are
        500 of them in the memory.

        :param accept: media types, as the header Accept has them; empty for whole objects
        :param most: objects of a page
        :param only: as of ``list``
        """
        path, rest, limit = path_of(kind, namespace), "", most
        headers = {"Accept": accept} if accept else {}
        large: list[str] = []
        for _page in range(MOST_PAGES):
            query = [("limit", str(limit)), *chosen, *([("continue", rest)] if rest else [])]
            try:
                response = self._call("get", path, query, header_params=dict(headers))
                body, values = _read_page(response, f"GET {path}", limit)
                data = _decoded(body, 200, f"GET {path}")
            except ApiError as error:
                if not error.too_large:
                    raise
                if limit > 1:
                    limit = max(1, limit // FEWER)
                    continue
                passed, rest = self._passed(kind, path, query, error)
                chosen_too = only is None or only(passed.items[0])
                if chosen_too and kind in _PARTIAL:
                    yield passed
                elif chosen_too:
                    large.append(_place_of(passed.items[0]))
            else:
                page = _Page(tuple(_items(kind, data, path)), _version_of(data), values, len(body))
                yield page if only is None else page.chosen(only)
                rest = _metadata(data, "continue")
                if values * FEWER <= MOST_PAGE_VALUES and len(body) * FEWER <= MOST_PAGE:
                    limit = min(most, limit * 2)
            if not rest:
                break
        else:
            raise ApiError(
                200,
                "Unreadable",
                f"the list has no end after {MOST_PAGES} answers",
                f"GET {path}",
                "Look at what answers as the API server",
            )
        if large:
            seen = f"{_too_large()}: {folded(large, _NAMED)}"
            raise ApiError(200, _TOO_LARGE, seen, f"GET {path}", _SHRINK)

    def _passed(
        self, kind: Kind, path: str, query: typing.Sequence[tuple[str, str]], error: ApiError
    ) -> tuple[_Page, str]:
        """A page with the one object that is too large, of which it has the metadata, and what goes on behind it.

        :raises ApiError: the metadata is as large, or it is not of one object
        """
        body, values = _read_page(self._call("get", path, query, header_params={"Accept": METADATA}), f"GET {path}")
        data = _decoded(body, 200, f"GET {path}")
        items = list(_items(kind, data, path))
        if len(items) != 1:
            raise error
        name = kind if isinstance(kind, str) else kind[1]
        item = {"kind": name, "metadata": items[0].get("metadata"), NOT_READ: _too_large()}
        return _Page((item,), _version_of(data), values, len(body)), _metadata(data, "continue")

    def watch(self, kind: str, version: str, namespace: str = "", selector: str = "") -> typing.Iterator[Resource]:
        """Events since ``version``, until the server ends the watch. The connection is there when this returns.

        :raises ApiError: also, from the iterator, for an ERROR event; its status is 410 when ``version`` is too old
        """
        path = path_of(kind, namespace)
        query = [
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(WATCH_SECONDS)),
        ]
        response = self._call(
            "get",
            path,
            query + ([("labelSelector", selector)] if selector else []),
            _request_timeout=(TIMEOUT[0], WATCH_SILENCE),
        )
        return self._events(response, path)

    @staticmethod
    def _events(response: typing.Any, path: str) -> typing.Iterator[Resource]:
        try:
            for line in _lines(response, f"WATCH {path}"):
                event = decode_answer(line, "an event")
                if not isinstance(event, dict):
                    raise ValueError(f"an event is a {type(event).__name__}")
                if event.get("type") == "ERROR":
                    status = event.get("object", {})
                    raise ApiError(
                        int(status.get("code", 500)),
                        str(status.get("reason", "")),
                        str(status.get("message", "")),
                        f"WATCH {path}",
                    )
                yield event
        except (HTTPError, OSError, ValueError, ParseError) as error:
            raise ApiError(0, "Unreachable", f"the watch broke off: {error}", f"WATCH {path}") from error
        finally:
            with contextlib.suppress(HTTPError, OSError):
                response.close()

    def log(self, namespace: str, pod: str, seconds: int) -> str:
        """The last seconds of a pod's log.

        :raises ApiError: not there, not allowed, or longer than any log of so few lines; with status 0 where the API
            server itself does not answer, and with 504 where it does, and the kubelet behind it gives no log
        """
        query = [("sinceSeconds", str(seconds)), ("tailLines", str(LOG_LINES))]
        path = f"{path_of('Pod', namespace, pod)}/log"
        where = f"GET {path}"
        try:
            response = self._call("get", path, query, _request_timeout=(TIMEOUT[0], LOG_SILENCE))
            return _counted(response, where, "log", MOST_LOG, 0, LOG_SECONDS)[0].decode(errors="replace")
        except ApiError as error:
            if error.status != 0:
                raise
            text = error.text
        # it raises where the API server is away
        self.version()
        raise ApiError(504, "NoLog", f"the kubelet of the pod's node gives no log: {text}", where)

    def apply(self, definition: Resource, manager: str, dry_run: bool) -> tuple[Resource, tuple[str, ...]]:
        """Server-side apply; the object as it then is, and the server's warnings.

        :raises ApiError: refused by the server or a webhook; reason Conflict when another manager owns a field
        """
        metadata = definition["metadata"]
        path = path_of(kind_of(definition), metadata.get("namespace", ""), metadata["name"])
        query = [("fieldManager", manager), ("force", "false")] + ([("dryRun", "All")] if dry_run else [])
        response = self._call("patch", path, query, definition, content_type="application/apply-patch+yaml")
        return _object(response, f"PATCH {path}"), _warnings(response)

    def patch(self, kind: str, namespace: str, name: str, change: Resource) -> Resource:
        """Merge ``change`` into an object (JSON merge patch, RFC 7386): null takes a key away.

        :raises ApiError: refused, or not there
        """
        return self._json(
            "patch", path_of(kind, namespace, name), body=change, content_type="application/merge-patch+json"
        )

    def remove_field(self, kind: str, namespace: str, name: str, uid: str, field: str) -> Resource:
        """Remove a field of an object, whatever else of it has changed meanwhile (JSON patch, RFC 6902).

        :param uid: of the object; another one of this name keeps its field
        :param field: JSON pointer to it
        :raises ApiError: refused, not there, or another object by now
        """
        change = [{"op": "test", "path": "/metadata/uid", "value": uid}, {"op": "remove", "path": field}]
        return self._json(
            "patch", path_of(kind, namespace, name), body=change, content_type="application/json-patch+json"
        )

    def create(self, definition: Resource, manager: str = "") -> Resource:
        """Make an object that is not there.

        :param manager: of its fields; empty for the one that the API server takes from the client's name
        :raises ApiError: refused; reason AlreadyExists
        """
        path, query = (
            path_of(kind_of(definition), definition["metadata"].get("namespace", "")),
            [("fieldManager", manager)] if manager else [],
        )
        return self._json("post", path, query, body=definition)

    def replace(self, definition: Resource) -> Resource:
        """Write a whole object anew.

        :raises ApiError: refused; reason Conflict when its resourceVersion is not that of the object any more
        """
        metadata = definition["metadata"]
        return self._json(
            "put", path_of(kind_of(definition), metadata.get("namespace", ""), metadata["name"]), body=definition
        )

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        grace_seconds: typing.Optional[int] = None,
        dry_run: bool = False,
        only: typing.Optional[typing.Mapping[str, str]] = None,
    ) -> bool:
        """Ask for deletion; False when it was not there.

        :param only: its ``uid`` or ``resourceVersion``: another object of this name is not deleted, and counts as not
            there
        :raises ApiError: refused
        """
        query = [("propagationPolicy", "Background")] + ([("dryRun", "All")] if dry_run else [])
        if grace_seconds is not None:
            query.append(("gracePeriodSeconds", str(grace_seconds)))
        body: typing.Optional[Resource] = None
        if only:
            # the API server reads no option from the URL of a request that has a body
            body = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": dict(only),
                "propagationPolicy": "Background",
            }
            body.update(
                {"dryRun": ["All"]} if dry_run else {},
                **({} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}),
            )
        try:
            self._json("delete", path_of(kind, namespace, name), query, body)
        except ApiError as error:
            if error.absent or (only and error.reason == "Conflict"):
                return False
            raise
        return True

    def evict(self, namespace: str, pod: str, uid: str) -> bool:
        """Ask for the end of a pod, as a drain does: PodDisruptionBudgets are asked. False when it was not there.

        :param uid: of the pod that is meant. Another pod of this name, such as that of a StatefulSet on another node,
            stays, and counts as not there
        :raises ApiError: refused; with ``held`` while a PodDisruptionBudget holds it
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": options,
        }
        try:
            self._json("post", f"{path_of('Pod', namespace, pod)}/eviction", body=body)
        except ApiError as error:
            if error.absent or error.reason == "Conflict":
                return False
            raise
        return True

    def exec(
        self, container: Container, command: typing.Sequence[str], stderr: bool = True, seconds: float = TIMEOUT[1]
    ) -> Channels:
        """Start a command in a container, with its stdin and its streams.

        :param stderr: whether it has a channel of its own; if not, nobody sees it
        :param seconds: limit of each step of the connection
        :raises ApiError: the container is not there or does not run, or this is not allowed
        """
        if self._way is None:
            self._way = Way(self._dynamic.configuration, self._dynamic.client.default_headers.items())
        streams = [("stdin", "true"), ("stdout", "true"), ("stderr", "true" if stderr else "false"), ("tty", "false")]
        names = [("container", container.name)] if container.name else []
        query = [*(("command", word) for word in command), *names, *streams]
        try:
            return self._way.open(f"{path_of('Pod', container.namespace, container.pod)}/exec", query, seconds)
        except Refused as refused:
            raise api_error(refused, f"exec in {container}") from refused

    def shell(self, namespace: str, pod: str, container: str, command: typing.Sequence[str], clock: Clock) -> Shell:
        """Start a shell in a container (see _parse/pods/shell.py for what it prints).

        :raises ApiError: the container is not there or does not run
        """
        target = Container(namespace, pod, container)
        return Shell(again(lambda: self.exec(target, command, stderr=False)), clock)


class Shell:
    """A shell that runs in a container, one command after the other, over one connection. What it says by itself at
    first is its command 0."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._channels = channels
        self._clock = clock
        self._stream = Stream()
        self._begin("shell")

    def _begin(self, command: str) -> None:
        self._command = command
        self._started = self._clock()

    @property
    def open(self) -> bool:
        """Whether it takes a further command."""
        return self._channels.open

    @property
    def running(self) -> bool:
        """Whether its command runs."""
        return self.open and self._stream.exit_code is None

    def start(self, command: typing.Sequence[str]) -> None:
        """Start a command. The shell ends the one before it, if that still runs.

        :raises OperandError: a word has a control character. The protocol has one command a line, and no quotes of a
            shell keep a newline in its line
        """
        line = shlex.join(one_line(word, "a word of the command") for word in command)
        number = self._stream.begin()
        self._begin(line)
        self._channels.write(f"{number} {self._command}\n".encode())

    def _pump(self, seconds: float) -> None:
        self._channels.update(seconds)
        self._stream.feed(self._channels.take(STDOUT))
        if self._stream.overflowed:
            # what else it prints is of no use, and would be as long
            self.close()

    def wait_for(self, text: str, seconds: float) -> bool:
        """Wait until the command printed ``text``, ended, or the time is over."""
        end = self._clock() + seconds
        looked = 0
        while True:
            found, looked = self._stream.find(text, looked) >= 0, self._stream.size
            if found or not self.running or self._clock() >= end:
                return found
            self._pump(max(0.0, min(1.0, end - self._clock())))

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        """Wait for the end of the command, at most ``seconds``; then the connection is closed and the result says so.

        :param lost: why the end is awaited no longer; empty as long as it is
        """
        end = self._clock() + seconds
        while self.running and self._clock() < end and not lost():
            self._pump(max(0.0, min(1.0, end - self._clock())))
        why = lost() if self.running else ""
        outside = self.running and not why
        if self.running:
            self.close()
        code = self._stream.exit_code
        return CommandResult(
            command=self._command,
            exit_code=code,
            output=self._stream.text,
            # of coreutils' timeout: 124, and 137 when it had to kill
            timed_out=outside or code in (124, 137),
            seconds=round(self._clock() - self._started, 3),
            error="" if code is not None or outside else why or self._farewell(),
        )

    def _farewell(self) -> str:
        """Why there is no exit code, in the words of the API server or of the kubelet: a Status on the error
        channel."""
        if self._stream.overflowed:
            return f"it printed more than {self._stream.size} bytes, and was left"
        if self._channels.lost:
            return f"the connection to the pod broke: {self._channels.lost}"
        return (
            "no exit code:"
            f" {status_message(self._channels.take(ERROR).decode(errors='replace'))[:300] or 'the connection ended'}"
        )

    def close(self) -> None:
        """Leave the shell. It ends with its stdin, what runs in it by its own limit, or both with their pod."""
        self._channels.close()


def again(attempt: typing.Callable[[], T]) -> T:
    """Try what the server may grant in a moment, a few times. For what has not begun when it is refused.

    :raises ApiError: of the last attempt, or of the first one that another would not help
    """
    for pause in PAUSES:
        try:
            return attempt()
        except ApiError as error:
            if not error.passing:
                raise
        # not all at once again
        time.sleep(pause * random.SystemRandom().uniform(0.5, 1.5))
    return attempt()


def _body(response: typing.Any, where: str, what: str, most: int) -> bytes:
    """:raises ApiError: it is larger than that, or broke off"""
    return _counted(response, where, what, most, 0)[0]


def _counted(
    response: typing.Any,
    where: str,
    what: str,
    most: int,
    most_values: int,
    seconds: float = 0.0,
    most_signs: int = 0,
) -> tuple[bytes, int]:
    """What a server sends, and how many values of JSON are in it.

    :param most: bytes
    :param most_values: 0 for any number, which is not counted then
    :param seconds: in which all of it must have come; 0 for any time
    :param most_signs: signs of values with which it may come where those outside of its strings are few enough, since
        who makes an object may fill a string with them; 0 for as many as values
    :raises ApiError: it is larger than that, takes longer, or broke off
    """
    said = bytearray()
    values = 0
    end = time.monotonic() + seconds
    try:
        for part in response.stream(65536, decode_content=True):
            if seconds and time.monotonic() >= end:
                response.close()
                raise ApiError(0, "Unreachable", f"the {what} did not end within {seconds:g} s", where)
            said += part
            values += count_values(part) if most_values else 0
            if len(said) > most or values > max(most_values, most_signs):
                response.close()
                limit = f"{most} bytes" if len(said) > most else f"{most_values} values"
                raise ApiError(response.status, _TOO_LARGE, f"the {what} has more than {limit}", where)
    except (HTTPError, OSError) as error:
        raise ApiError(0, "Unreachable", f"the answer broke off: {error}", where) from error
    body = bytes(said)
    if most_signs and values > min(most_values, len(body) // BYTES_OF_A_VALUE):
        values = count_values_outside_strings(body)
        if values > most_values:
            raise ApiError(response.status, _TOO_LARGE, f"the {what} has more than {most_values} values", where)
    return body, values


def _read_page(response: typing.Any, where: str, objects: int = 0) -> tuple[bytes, int]:
    """:param objects: that were asked for
    :raises ApiError: it is larger than a page may be, or broke off
    """
    return _counted(response, where, "page", MOST_PAGE, MOST_PAGE_VALUES, most_signs=MOST_OBJECT if objects == 1 else 0)


def _object(
    response: typing.Any, where: str, most_bytes: int = MOST_OBJECT, most_values: int = MOST_VALUES
) -> Resource:
    """:raises ApiError: the answer is larger than that, broke off, or is no object of JSON"""
    return _decoded(_body(response, where, "answer", most_bytes), response.status, where, most_values)


def _decoded(body: bytes, status: int, where: str, most_values: int = 0) -> Resource:
    """:raises ApiError: it has more values, or is no object of JSON"""
    try:
        data = decode_answer(body, "the answer", most_values=most_values)
    except ParseError as error:
        raise ApiError(status, "Unreadable", str(error), where) from error
    if not isinstance(data, dict):
        raise ApiError(status, "Unreadable", "the answer is no object", where)
    return data


def _too_large() -> str:
    return f"larger than {MOST_PAGE} bytes or {MOST_PAGE_VALUES} values, and not read"


def _without_largest(items: typing.Sequence[Resource]) -> tuple[list[Resource], int, int]:
    """Return the objects of a list, of which the largest have their metadata alone, with the values and bytes of all.

    Those alone are cut that no honest fleet has: a list of many small objects stays too large.
    """
    why = f"larger than {LARGE_VALUES} values or {LARGE_BYTES} bytes in a list that is too large, and not read"
    kept: list[Resource] = []
    values = size = 0
    for item in items:
        text = json.dumps(item)
        if count_values(text) > LARGE_VALUES or len(text) > LARGE_BYTES:
            metadata = item.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            parts = {
                key: metadata[key]
                for key in ("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences")
                if key in metadata and count_values(json.dumps(metadata[key])) <= MOST_METADATA
            }
            kept.append({"kind": item.get("kind"), "metadata": parts, NOT_READ: why})
            text = json.dumps(kept[-1])
        else:
            kept.append(item)
        values, size = values + count_values(text), size + len(text)
    return kept, values, size


def _place_of(item: Resource) -> str:
    """The name of an object, with its namespace, in words."""
    space = _metadata(item, "namespace")
    return title_of(item) + (f" in namespace {shown(space)}" if space else "")


def _items(kind: Kind, data: Resource, path: str) -> typing.Iterator[Resource]:
    """The objects of a list, with the kind that the API leaves out.

    :raises ApiError: it is no list
    """
    # an empty list of metadata has null for its items
    items = [] if data.get("items", False) is None else data.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ApiError(200, "Unreadable", "the answer is no list", f"GET {path}")
    named = {"kind": kind} if isinstance(kind, str) else {}
    yield from ({**named, **item} for item in items)


def _metadata(data: Resource, key: str) -> str:
    """A text of the metadata of a list or an object; empty where it is not there."""
    metadata = data.get("metadata")
    return str(metadata.get(key) or "") if isinstance(metadata, dict) else ""


def _version_of(data: Resource) -> str:
    return _metadata(data, "resourceVersion")


def _lines(response: typing.Any, where: str) -> typing.Iterator[bytes]:
    """The lines of a watch, each of which is one object.

    :raises ApiError: a line is larger than an object may be. Its status is that of a version that is too old: a list
        reads the others, and goes on behind it
    """
    large = ApiError(410, _TOO_LARGE, "an event is too large, and the list is read again", where)
    rest: list[bytes] = []
    size = 0
    for chunk in response.stream(amt=None, decode_content=False):
        first, *more = chunk.split(b"\n")
        rest.append(first)
        size += len(first)
        if size > MOST_OBJECT:
            raise large
        if more:
            lines = (b"".join(rest), *more[:-1])
            rest, size = [more[-1]], len(more[-1])
            for line in filter(bytes.strip, lines):
                if count_values(line) > MOST_VALUES and count_values_outside_strings(line) > MOST_VALUES:
                    raise large
                yield line


def _warnings(response: typing.Any) -> tuple[str, ...]:
    """Texts of the headers ``Warning: 299 - "text"``."""
    values = response.headers.getlist("Warning") if hasattr(response.headers, "getlist") else []
    return tuple(value.partition('"')[2].rstrip('"') for value in values)


def api_error(error: typing.Any, where: str) -> ApiError:
    """The server's Status, where it sent one."""
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body
    try:
        status = decode_json(body or "", "Status", most_bytes=MIB, unique=False)
    except ParseError:
        status = {}
    if not isinstance(status, dict):
        status = {}
    text = str(status.get("message") or body or error.reason or "no text")
    reason = str(status.get("reason") or error.reason or "")
    return ApiError(
        int(error.status or 0),
        reason,
        text.strip()[:1000],
        where,
        causes=_causes(status),
        retry_after=_retry_after(error),
    )


def _causes(status: Resource) -> tuple[str, ...]:
    """Reasons of the causes of a v1 Status."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return (
        tuple(str(cause.get("reason", "")) for cause in causes if isinstance(cause, dict))
        if isinstance(causes, list)
        else ()
    )


def _retry_after(error: typing.Any) -> float:
    """The header Retry-After in seconds (RFC 9110, 10.2.3); 0 where there is none, or where it is a date, which the API
    server never sends."""
    value = str((getattr(error, "headers", None) or {}).get("Retry-After") or "")
    return float(value) if value.isascii() and value.isdigit() and len(value) < 6 else 0.0
