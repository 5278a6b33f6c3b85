# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes of a driver policy that get the same image, and the rules for this image. Part of the check
``operators.driver``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.node.platform import ObservedPlatform
from ..._model.operators.drivers import (
    GPU,
    GPU_OF_NODES,
    LABEL_ABSENT,
    NIC,
    NIC_OF_NODES,
    OF_GPUS,
    OF_NICS,
    DriverHost,
    DriverPolicy,
    driver_image,
)
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

CHECK = "operators.driver"
EXPECTED = "an image for the kernel, and all requirements to load its driver"
#: systems for which NVIDIA's repositories have images of DOCA-OFED, by ID of os-release
_SYSTEMS = ("ubuntu", "rhel", "rhcos", "sles")
#: systems, and flavors of their kernels, for which NVIDIA publishes precompiled images
_PRECOMPILED, _FLAVORS = ("ubuntu22.04", "ubuntu24.04"), ("generic", "nvidia", "aws", "azure", "oracle")
#: systems whose packages need a subscription, with the command that shows it
_SUBSCRIBED = {"rhel": "subscription-manager status", "sles": "SUSEConnect --status-text"}
_NVIDIA = ("nvcr.io/nvidia",)
#: keys of a policy for a precompiled driver and for package repositories
_KEYS = {
    NIC: ("spec.ofedDriver.forcePrecompiled", "spec.ofedDriver.repoConfig.name"),
    GPU: ("spec.driver.usePrecompiled", "spec.driver.repoConfig.configMapName"),
    GPU_OF_NODES: ("spec.usePrecompiled", "spec.repoConfig.name"),
}
_KEYS[NIC_OF_NODES] = _KEYS[NIC]
#: key of a policy for the version of its driver
VERSION_KEYS = {
    NIC: "spec.ofedDriver.version",
    NIC_OF_NODES: "spec.ofedDriver.version",
    GPU: "spec.driver.version",
    GPU_OF_NODES: "spec.version",
}
OWN_DRIVER = {
    NIC: "remove spec.ofedDriver and use the driver of the node",
    NIC_OF_NODES: "remove spec.ofedDriver and use the driver of the node",
    GPU: "set spec.driver.enabled to false and install the driver on the node",
    GPU_OF_NODES: "delete the object and install the driver on the node",
}


@dataclasses.dataclass(frozen=True)
class DriverPool:
    """The nodes of a driver policy that get the same image, with the properties by which the image is judged.

    :ivar policy: the driver policy
    :ivar host: properties that the nodes have in common
    :ivar nodes: names of the nodes
    :ivar signed: whether their kernels load only signed modules; None if not known
    :ivar mirrored: whether the cluster pulls images from mirrors
    :ivar remark: text that states that the nodes' own driver suffices; empty if it does not
    """

    policy: DriverPolicy
    host: DriverHost
    nodes: tuple[str, ...]
    signed: typing.Optional[bool]
    mirrored: bool
    remark: str

    @property
    def subject(self) -> str:
        host = self.host
        return (
            f"{self.policy.kind} {self.policy.name}, kernel {host.kernel or 'unknown'} of {host.os}{host.version}"
            f" {host.machine}".rstrip()
        )

    @property
    def image(self) -> str:
        return driver_image(self.policy, self.host, self.policy.precompiled)

    @property
    def digest(self) -> bool:
        return self.policy.version.startswith("sha256:")

    @property
    def of_nvidia(self) -> bool:
        return self.policy.image.startswith(_NVIDIA)


def list_pools(
    policy: DriverPolicy,
    hosts: typing.Iterable[DriverHost],
    platforms: typing.Mapping[str, ObservedPlatform],
    mirrored: bool,
    remark: str,
) -> tuple[DriverPool, ...]:
    groups: dict[DriverHost, list[str]] = {}
    for host in hosts:
        groups.setdefault(dataclasses.replace(host, name="", gpu=False), []).append(host.name)
    found = []
    for host, names in groups.items():
        values = [platforms[name].value for name in names if name in platforms]
        said = [value.signed_modules for value in values if value is not None]
        signed = True if True in said else None if None in said or len(said) < len(names) else False
        found.append(DriverPool(policy, host, tuple(names), signed, mirrored, remark))
    return tuple(found)


def check_pool(pool: DriverPool) -> Finding:
    policy = pool.policy
    if policy.ready:
        return build_pass(
            CHECK, pool.subject, f"{policy.image}:{policy.version or 'default'} runs, as the operator reports", EXPECTED
        )
    for rule in (
        _report_unlabelled,
        _report_message,
        _report_unsigned,
        _check_digest,
        _check_precompiled,
        _check_system,
        _check_compiled,
    ):
        finding = rule(pool)
        if finding is not None:
            return finding
    if policy.kind in (NIC_OF_NODES, GPU_OF_NODES):
        # no stage of a run makes this policy, so none waits for its driver
        why = (
            "The operator does not report that the driver runs on these nodes. The driver may still be compiling, or it"
            " cannot start."
        )
        remedy = (
            f"Run kubectl describe {policy.kind.lower()} {policy.name}, and correct the error in the logs of the"
            " driver pods. When the driver is ready, run stage operators again."
        )
        return Finding(CHECK, pool.subject, UNKNOWN, _describe_image(pool), EXPECTED, why, remedy)
    return build_pass(CHECK, pool.subject, _describe_image(pool), EXPECTED)


def _describe_image(pool: DriverPool) -> str:
    unsure = "" if pool.signed is not None else "; whether the kernel accepts unsigned modules is unknown"
    return f"image {pool.image}, {_describe_way(pool)}{unsure}"


def _describe_way(pool: DriverPool) -> str:
    if pool.digest:
        return "named by its digest"
    if pool.policy.precompiled:
        return "with a precompiled driver"
    by = "with OpenShift's driver toolkit" if pool.host.os == "rhcos" else "with packages of the distribution"
    # only the network operator searches for a precompiled image
    instead = (
        f", or {driver_image(pool.policy, pool.host, True)} if the registry has this image"
        if pool.policy.kind in OF_NICS
        else ""
    )
    return (
        f"with which each of {count_of(len(pool.nodes), 'node')} compiles the driver {by}, which takes minutes{instead}"
    )


def _make_finding(pool: DriverPool, status: typing.Literal["fail", "warn"], why: str, remedy: str) -> Finding:
    return Finding(CHECK, pool.subject, status, _describe_image(pool), EXPECTED, f"{why}{pool.remark}", remedy)


def _report_unlabelled(pool: DriverPool) -> typing.Optional[Finding]:
    """Return a failed finding if the nodes of a pool lack the labels of node feature discovery by which the operators
    choose the driver image. Return None if the labels are present."""
    host, missing = pool.host, []
    if not host.os or not host.version:
        missing.append("system-os_release.ID and VERSION_ID")
    if host.os == "rhcos" and not host.ostree and not pool.policy.precompiled and not pool.digest:
        missing.append("system-os_release.OSTREE_VERSION")
    if not missing:
        return None
    why = (
        f"The operator chooses the image by the label {' and '.join(missing)} of node feature discovery. It starts no"
        " driver on a node without this label."
    )
    remedy = (
        f"Run kubectl get node {pool.nodes[0]} --show-labels. If the label is missing, correct the error of the"
        " worker pod of node feature discovery on this node, which sets the label: kubectl get pods -A -o wide"
        f" --field-selector spec.nodeName={pool.nodes[0]} shows the pod, and its log the error. Then run stage"
        " operators again."
    )
    return Finding(CHECK, pool.subject, FAIL, f"{LABEL_ABSENT} on: {', '.join(pool.nodes[:10])}", EXPECTED, why, remedy)


def _report_message(pool: DriverPool) -> typing.Optional[Finding]:
    if not pool.policy.message:
        return None
    forced, _repositories = _KEYS[pool.policy.kind]
    remedy = (
        f"Run kubectl describe {pool.policy.kind.lower()} {pool.policy.name}. If a precompiled image is missing, build"
        f" the image or set {forced} to false. Then run stage operators again."
    )
    return _make_finding(pool, FAIL, f"The operator reports: {format_clause(pool.policy.message)}.", remedy)


def _report_unsigned(pool: DriverPool) -> typing.Optional[Finding]:
    if not pool.signed:
        return None
    policy, forced = pool.policy, _KEYS[pool.policy.kind][0]
    remedy = (
        "Build an image whose modules are signed with a key that is enrolled on the machines (mokutil --import) and set"
        f" {forced}; or {OWN_DRIVER[policy.kind]}; "
    )
    remedy += "or turn secure boot off. Then run stage operators again."
    if policy.precompiled and policy.kind in OF_GPUS and pool.host.os == "ubuntu" and pool.of_nvidia:
        return None
    if pool.digest or (policy.precompiled and not pool.of_nvidia):
        why = (
            "The kernel loads only signed modules (secure boot). Whether the modules of this image are signed is"
            " unknown, because this check does not inspect the image."
        )
        return _make_finding(pool, WARN, why, remedy)
    return _make_finding(
        pool,
        FAIL,
        "The kernel loads only signed modules (secure boot). The modules of this driver are not signed, so the kernel"
        " rejects them: 'Key was rejected by service'.",
        remedy,
    )


def _check_digest(pool: DriverPool) -> typing.Optional[Finding]:
    if not pool.digest:
        return None
    why = (
        "A digest names one image for one system and one kernel, and the operator treats it as precompiled. The system"
        " and the kernel of the image are unknown, because this check does not inspect the image."
    )
    return _make_finding(
        pool,
        WARN,
        why,
        f"Run skopeo inspect --no-tags docker://{pool.image}, and compare the system and the kernel of the image"
        " with those of the nodes (kubectl get nodes -o wide). If they are equal, waive this finding. Otherwise"
        " name another image, then run stage operators again.",
    )


def _check_precompiled(pool: DriverPool) -> typing.Optional[Finding]:
    if not pool.policy.precompiled:
        return None
    key = _KEYS[pool.policy.kind][0]
    flavor = next((name for name in _FLAVORS if pool.host.kernel.endswith(f"-{name}")), "")
    system = f"{pool.host.os}{pool.host.version}"
    if pool.of_nvidia and (system not in _PRECOMPILED or not flavor):
        why = (
            f"NVIDIA publishes precompiled drivers for {' and '.join(_PRECOMPILED)} with kernels {', '.join(_FLAVORS)}."
            " The registry must have a tag for the kernel of these nodes."
        )
        return _make_finding(
            pool,
            WARN,
            why,
            f"Build the image for kernel {pool.host.kernel} and push it to your own registry, or set {key} to"
            " false. Then run stage operators again.",
        )
    why = (
        "The registry must have an image for exactly this kernel. Whether the registry has this image is unknown,"
        " because this check does not query the registry."
    )
    remedy = (
        f"Check whether the image exists: skopeo inspect --no-tags docker://{pool.image}. If it does not exist, build"
        f" it or set {key} to false. Then run stage operators again."
    )
    return _make_finding(pool, WARN, why, remedy)


def _check_system(pool: DriverPool) -> typing.Optional[Finding]:
    if pool.host.os in _SYSTEMS or not pool.of_nvidia:
        return None
    why = f"NVIDIA publishes images for {', '.join(_SYSTEMS)}. No image for {pool.host.os} is known."
    remedy = (
        f"Run skopeo list-tags docker://{pool.policy.image}. If it lists an image for {pool.host.os}, waive this"
        f" finding. Otherwise {OWN_DRIVER[pool.policy.kind]}. Then run stage operators again."
    )
    return _make_finding(pool, WARN, why, remedy)


def _check_compiled(pool: DriverPool) -> typing.Optional[Finding]:
    """Warn if the packages for compiling the driver come from repositories that need a subscription, or that a
    disconnected site cannot reach. Return None otherwise, and on RHCOS, where the driver toolkit of the release is
    enough.
    """
    host, key = pool.host, _KEYS[pool.policy.kind][1]
    if host.os == "rhcos" or pool.policy.repositories:
        return None
    if host.os in _SUBSCRIBED:
        why = (
            f"The headers of kernel {host.kernel} come from repositories that require a subscription. The operator uses"
            " the subscription of the node."
        )
        remedy = (
            f"On the nodes, check with {_SUBSCRIBED[host.os]} that they are registered. Or set {key} to a ConfigMap"
            " with your own repository. Then run stage operators again."
        )
        return _make_finding(pool, WARN, why, remedy)
    if pool.mirrored:
        why = (
            f"The cluster pulls images from mirrors, as disconnected sites do. The headers of kernel {host.kernel} come"
            " from the repositories of the distribution, which the nodes of a disconnected site cannot reach."
        )
        remedy = (
            f"Set {key} to a ConfigMap with repositories that the nodes can reach, or use a precompiled image. Then run"
            " stage operators again."
        )
        return _make_finding(pool, WARN, why, remedy)
    return None
