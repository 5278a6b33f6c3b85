# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the networks of a pod from the annotation that multus writes."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.text import both_ends
from ...._model.boundary.addresses import HOST_ADDRESS, HostAddress
from ...._model.boundary.devices import INTERFACE, PCI_ADDRESS, RDMA_DEVICE, Interface, PciAddress
from ...._model.boundary.form import Form, describe_rejected
from ...._model.boundary.kubernetes import LABEL_VALUE, NAMESPACED, SUBDOMAIN, LabelValue
from ...._model.boundary.words import HOST
from ...._model.job.nccl import PodFunction, TrainingPod
from ..core import controller_uid, parse_controller
from ..foreign import is_mirror_pod
from ..resource import (
    Resource,
    ResourceError,
    json_of,
    list_known,
    mapping_at,
    name_of,
    normalize_known,
    text_at,
    text_of,
    title_of,
)

STATUS_ANNOTATION = "k8s.v1.cni.cncf.io/network-status"
#: characters of a host name; the kubelet cuts a longer pod name
_HOST_NAME = 63
#: secondary networks of a pod: whoever may write a pod writes its annotation, and all pods of the namespace are kept
MOST_INTERFACES = 256
#: by which the operators mark all pods of a job whose controllers may be several: jobs of a JobSet, the launcher of an
#: MPIJob
_JOB_LABELS = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name", "leaderworkerset.sigs.k8s.io/name")


def network_status(pod: Resource) -> list[dict[str, typing.Any]]:
    """Return the networks of a pod, as multus writes them. Items of the list that are not mappings are left out.

    Format: annotation k8s.v1.cni.cncf.io/network-status, a JSON list (Network Plumbing Working Group's specification
    1.3).

    :raises ResourceError: the annotation is missing, or is not a valid JSON list
    """
    what = f"pod {name_of(pod)}"
    text = mapping_at(pod, "metadata", "annotations").get(STATUS_ANNOTATION)
    if not text:
        raise ResourceError(f"{what} has no annotation {STATUS_ANNOTATION}: multus did not attach it")
    entries = json_of(text, f"{what}: the annotation {STATUS_ANNOTATION}")
    if not isinstance(entries, list):
        raise ResourceError(f"{what}: the annotation {STATUS_ANNOTATION} is not a list")
    return [entry for entry in entries if isinstance(entry, dict)]


def network_interface(pod: Resource, network: str) -> tuple[Interface, HostAddress, typing.Optional[PciAddress]]:
    """Return the interface, the IP address and the PCI address of a pod on ``network`` (namespace/name). The PCI
    address is None if multus did not write one.

    Any client that may write the pod or its status can write the annotation, so all three values are validated.

    :raises ResourceError: the annotation is missing or is not a valid JSON list, it does not list the network, the
        network has no interface or no address, or one of the three values is invalid
    """
    what = f"pod {name_of(pod)}"
    entries = network_status(pod)
    entry = next((entry for entry in entries if entry.get("name") == network), None)
    if entry is None:
        seen = ", ".join(describe_rejected(entry.get("name")) for entry in entries)
        raise ResourceError(f"{what} is not attached to {network}; it is attached to: {seen or 'nothing'}")
    addresses = entry.get("ips")
    if not isinstance(addresses, list) or not addresses or not entry.get("interface"):
        raise ResourceError(f"{what} has no IP address or no interface on {network}")
    where = f"{what}, network {describe_rejected(network)}"
    pci = text_at(PCI_ADDRESS, mapping_at(entry, "device-info", "pci"), "pci-address", where)
    return (
        text_of(INTERFACE, entry["interface"], f"{where}: interface"),
        text_of(HOST_ADDRESS, addresses[0], f"{where}: address"),
        pci or None,
    )


def held_addresses(pod: Resource) -> typing.Optional[frozenset[str]]:
    """Return the IP addresses that a pod uses on all its networks. The result is empty if the pod has ended, because
    the kubelet writes the phase of an ended pod only after it has removed the sandbox. Return None if the addresses are
    not known, because multus has not attached the pod yet, or the annotation is invalid.

    :raises ResourceError: the object has an unexpected form
    """
    if mapping_at(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return frozenset()
    try:
        entries = network_status(pod)[:MOST_INTERFACES]
    except ResourceError:
        return None
    shown = [entry.get("ips") for entry in entries]
    return frozenset(list_known(HOST_ADDRESS, (ip for ips in shown if isinstance(ips, list) for ip in ips))) or None


def own_interface(pod: Resource) -> tuple[Interface, HostAddress, None]:
    """Return the interface and the IP address of a pod on the cluster network, in the form of
    :func:`network_interface`. The third item, the PCI address, is always None, because the cluster network has no RDMA
    device. The interface is that of the default entry in the annotation of multus, or ``eth0`` if there is no such
    entry.

    :raises ResourceError: the pod has no address yet, or one of the two values is invalid
    """
    address = mapping_at(pod, "status").get("podIP")
    if not address:
        raise ResourceError(f"pod {name_of(pod)} has no status.podIP")
    try:
        entries = json_of(mapping_at(pod, "metadata", "annotations").get(STATUS_ANNOTATION) or "[]", STATUS_ANNOTATION)
    except ResourceError:
        # where multus says nothing that can be read, the name is the runtime's own
        entries = []
    named = (
        [entry.get("interface") for entry in entries if isinstance(entry, dict) and entry.get("default")]
        if isinstance(entries, list)
        else []
    )
    what = f"pod {name_of(pod)}"
    return (
        text_of(INTERFACE, next(filter(None, named), "eth0"), f"{what}: interface"),
        text_of(HOST_ADDRESS, address, f"{what}: status.podIP"),
        None,
    )


def training_pods(pods: typing.Iterable[Resource]) -> list[TrainingPod]:
    """Return the pods of a job that are assigned to a node.

    Mirror pods are left out, because a kubelet can create them in any namespace. A pod that failed or is being deleted
    is left out if its controller has replaced it, as a Job does.

    :raises ResourceError: the name of a pod, of its node or of its host is missing or invalid
    """
    found = [
        (training_pod(pod), _has_ended(pod), controller_uid(pod))
        for pod in pods
        if mapping_at(pod, "spec").get("nodeName") and not is_mirror_pod("Pod", pod)
    ]
    replaced = {(pod.host, uid) for pod, ended, uid in found if uid and not ended}
    return [pod for pod, ended, uid in found if not ended or (pod.host, uid) not in replaced]


def _has_ended(pod: Resource) -> bool:
    """Return whether a pod has failed or is being deleted, so that another pod may have replaced it. Return False for a
    pod that has succeeded, which is not replaced.
    """
    return mapping_at(pod, "status").get("phase") == "Failed" or bool(
        mapping_at(pod, "metadata").get("deletionTimestamp")
    )


def _job_of(pod: Resource) -> LabelValue:
    """Return an identifier of the job of a pod: the job name with which the operator labels all pods of a job, or else
    the uid of the pod's controller. Return an empty string if the pod has no controller.

    The creator of a pod writes the controller reference. The reference can be trusted nevertheless, because the
    controller manages all pods that reference it. The controller deletes one of two pods with the same index, and
    releases a pod that its selector does not match.
    """
    if not any(parse_controller(pod)):
        return ""
    labels = mapping_at(pod, "metadata", "labels")
    return next(
        filter(None, (normalize_known(LABEL_VALUE, labels.get(label)) for label in _JOB_LABELS)), ""
    ) or controller_uid(pod)


def training_pod(pod: Resource) -> TrainingPod:
    """Parse a pod of a job, with its interfaces on secondary networks. If the annotation of multus is missing or
    invalid, the interfaces are empty and ``error`` contains the reason.

    ``host`` is the host name that NCCL uses: the field hostname, which Job, JobSet and the training operators set, or
    else the name of the pod, up to the first dot. For a pod on the host network it is the name of the node.

    :raises ResourceError: the name of the pod, of its node or of its host is missing or invalid
    """
    spec, what = mapping_at(pod, "spec"), title_of(pod)
    name, node = text_of(SUBDOMAIN, name_of(pod), what), text_at(SUBDOMAIN, spec, "nodeName", what)
    host = node if spec.get("hostNetwork") is True else (text_at(HOST, spec, "hostname", what) or name)[:_HOST_NAME]
    found = TrainingPod(name, host.partition(".")[0], node, job=_job_of(pod))
    try:
        entries = [entry for entry in network_status(pod) if entry.get("default") is not True]
        if len(entries) > MOST_INTERFACES:
            raise ResourceError(
                f"{what}: the annotation {STATUS_ANNOTATION} has {len(entries)} networks; the limit is"
                f" {MOST_INTERFACES}"
            )
        return dataclasses.replace(found, functions=tuple(map(_parse_pod_function, entries)))
    except ResourceError as problem:
        return dataclasses.replace(found, error=both_ends(str(problem)))


def _parse_pod_function(entry: Resource) -> PodFunction:
    """Return the function of one network in the status annotation of a pod. Its PCI address and RDMA device are None if
    multus does not report them.

    :raises ResourceError: a value has another form
    """
    pci, what = mapping_at(entry, "device-info", "pci"), f"the annotation {STATUS_ANNOTATION}"

    def told(form: Form, parent: Resource, key: str) -> str:
        """Return a text of the annotation in the given form; empty if it is missing."""
        return text_at(form, parent, key, what)

    return PodFunction(
        network=told(NAMESPACED, entry, "name"),
        interface=told(INTERFACE, entry, "interface"),
        pci=told(PCI_ADDRESS, pci, "pci-address") or None,
        rdma_device=told(RDMA_DEVICE, pci, "rdma-device") or None,
    )
