# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver containers of NVIDIA's operators, before their policies are applied: which image each kernel gets, and
what it needs to come up.

Check ids: ``operators.driver``, ``operators.driver_kernels``.

What is only said here is proven later: that the driver runs by stage network's wait, what it does by stages
virtual_functions, host and bandwidth. So what nobody can know from here, such as whether a registry has an image, is a
warning with the command that tells it.

- A driver is compiled on the node, or precompiled for its kernel. The network operator looks for the tag of the
  precompiled one itself and takes it where it is; forcePrecompiled lets it take no other. The GPU operator has to be
  told by usePrecompiled.
- Compiling takes the headers of the kernel that runs: on RHCOS out of OpenShift's driver toolkit, elsewhere by
  packages. For these RHEL and SLES need the subscription of the node (the operator hands it on), and a site without the
  internet a repository of its own (repoConfig).
- NVIDIA signs neither what is compiled on a node nor its precompiled images of DOCA-OFED. Those of the GPU driver for
  Ubuntu are built of Canonical's packages.

[Mellanox/network-operator pkg/state/state_ofed.go renderObjects, handleSubscriptionVolumes; network-operator-docs
docs/platform-support.rst; NVIDIA/gpu-operator internal/state/driver.go; cloud-native-docs
gpu-operator/precompiled-drivers.rst; Mellanox/doca-driver-build entrypoint.sh]
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import NIC_POLICY, needs_nic_policy
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import ObservedPlatform
from ..._model.operators.drivers import (
    GPU,
    GPU_OF_NODES,
    NIC,
    NIC_OF_NODES,
    OF_GPUS,
    OF_NICS,
    DriverHost,
    DriverPolicy,
    driver_image,
)
from ..._model.operators.operators import OperatorsSeen
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

CHECK, KERNELS = "operators.driver", "operators.driver_kernels"
_EXPECTED = "an image that fits the kernel, and what it takes to load it"
#: of whom NVIDIA's repositories have images of DOCA-OFED, by ID of os-release
_SYSTEMS = ("ubuntu", "rhel", "rhcos", "sles")
#: for which NVIDIA publishes precompiled ones
_PRECOMPILED, _FLAVORS = ("ubuntu22.04", "ubuntu24.04"), ("generic", "nvidia", "aws", "azure", "oracle")
#: whose packages need a subscription
_SUBSCRIBED = {"rhel": "subscription-manager status", "sles": "SUSEConnect --status-text"}
_NVIDIA = ("nvcr.io/nvidia",)
#: what the driver container of the HCAs takes out of the kernel
_RELOADED = "mlx5_core"
#: nodes that are named
_NAMED = 10
#: what a policy calls it: keys for a precompiled driver and for package repositories
_KEYS = {
    NIC: ("spec.ofedDriver.forcePrecompiled", "spec.ofedDriver.repoConfig.name"),
    GPU: ("spec.driver.usePrecompiled", "spec.driver.repoConfig.configMapName"),
    GPU_OF_NODES: ("spec.usePrecompiled", "spec.repoConfig.name"),
}
_KEYS[NIC_OF_NODES] = _KEYS[NIC]
_OWN = {
    NIC: "leave spec.ofedDriver away and use the driver of the node",
    NIC_OF_NODES: "leave spec.ofedDriver away and use the driver of the node",
    GPU: "set spec.driver.enabled to false and install the driver on the node",
    GPU_OF_NODES: "delete it and install the driver on the node",
}


@dataclasses.dataclass(frozen=True)
class _Pool:
    """Nodes of one policy that get the same image. With what their kernels ask of modules, and whether each one's own
    driver shows RDMA devices."""

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


def check(
    intent: Intent,
    seen: typing.Optional[OperatorsSeen],
    platforms: typing.Mapping[str, ObservedPlatform],
    hcas: typing.Mapping[str, ObservedHcas],
    mirrored: bool,
) -> typing.Iterator[Finding]:
    """For each policy with a driver a finding on each kernel, and one on how many kernels there are; none where no
    policy brings or may bring a driver.

    :param platforms: what the nodes show, by which the kernel asks for signed modules or not
    :param hcas: what the nodes show of HCAs, by which their own driver is enough or not
    :param mirrored: the cluster pulls images from mirrors, as sites without the internet do
    """
    if seen is None or seen.errors:
        # operators.needed says what could not be read
        if _asks(intent):
            why = "What the API server has of the policy and of the nodes was not all read."
            yield Finding(
                CHECK,
                f"{NIC} {NIC_POLICY}",
                UNKNOWN,
                "not read",
                _EXPECTED,
                why,
                "See operators.needed and operators.read, and run the stage again.",
            )
        return
    policies = list(_policies(intent, seen))
    for policy in policies:
        hosts = [
            host
            for host in seen.hosts
            if (host.gpu or policy.kind not in OF_GPUS) and (policy.nodes is None or host.name in policy.nodes)
        ]
        if not policy.container and any(other.container and _brings_for(other, policy) for other in policies):
            # a policy for some of the nodes brings the driver, and is told by itself
            continue
        if not policy.container:
            yield ok(
                CHECK,
                f"{policy.kind} {policy.name}",
                "brings no driver container: the nodes have a driver of their own",
                _EXPECTED,
            )
        elif hosts:
            remark = _remark(policy, intent, hosts, hcas)
            pools = _list_pools(policy, hosts, platforms, mirrored, remark)
            yield from map(_check_pool, pools)
            yield _check_kernels(policy, pools)
            yield from _report_default_routes(policy, [host.name for host in hosts], platforms, hcas)


def _asks(intent: Intent) -> bool:
    return intent.cluster.network_operator.ofed_driver is not None and any(map(needs_nic_policy, intent.fabrics))


def _policies(intent: Intent, seen: OperatorsSeen) -> typing.Iterator[DriverPolicy]:
    """As they will be: what the intent asks for is applied over the one NicClusterPolicy that the operator obeys."""
    there = next((policy for policy in seen.drivers if (policy.kind, policy.name) == (NIC, NIC_POLICY)), None)
    if _asks(intent):
        operator = intent.cluster.network_operator
        image, version = f"{operator.repository}/doca-driver", operator.ofed_driver or ""
        base = there or DriverPolicy(NIC, NIC_POLICY)
        same = (base.image, base.version) == (image, version)
        yield dataclasses.replace(
            base,
            container=True,
            image=image,
            version=version,
            ready=base.ready and same,
            message=base.message if same else "",
        )
    elif there is not None:
        yield there
    delegated = any(policy.delegated for policy in seen.drivers)
    yield from (
        policy
        for policy in seen.drivers
        if policy.kind in (NIC_OF_NODES, GPU) or (policy.kind == GPU_OF_NODES and delegated)
    )


def _brings_for(other: DriverPolicy, policy: DriverPolicy) -> bool:
    return any({other.kind, policy.kind} <= {*kinds} for kinds in (OF_NICS, OF_GPUS))


def _remark(
    policy: DriverPolicy, intent: Intent, hosts: typing.Iterable[DriverHost], hcas: typing.Mapping[str, ObservedHcas]
) -> str:
    """Remark that the kernel's own driver is enough, where it is: it drives the HCAs, and nothing that is asked for
    needs DOCA-OFED."""
    if policy.kind != NIC or policy.ready or intent.cluster.host.gpudirect == "peermem":
        return ""
    seen = [hcas[host.name].value for host in hosts if host.name in hcas]
    driven = [node is not None and any(hca.rdma_device for hca in node.hcas) for node in seen]
    if not driven or not all(driven):
        return ""
    return (
        " The HCAs of the nodes have RDMA devices already: without rdma_cluster.network_operator.ofed_driver no driver"
        " container is needed."
    )


def _list_pools(
    policy: DriverPolicy,
    hosts: typing.Iterable[DriverHost],
    platforms: typing.Mapping[str, ObservedPlatform],
    mirrored: bool,
    remark: str,
) -> tuple[_Pool, ...]:
    groups: dict[DriverHost, list[str]] = {}
    for host in hosts:
        groups.setdefault(dataclasses.replace(host, name="", gpu=False), []).append(host.name)
    found = []
    for host, names in groups.items():
        values = [platforms[name].value for name in names if name in platforms]
        said = [value.signed_modules for value in values if value is not None]
        signed = True if True in said else None if None in said or len(said) < len(names) else False
        found.append(_Pool(policy, host, tuple(names), signed, mirrored, remark))
    return tuple(found)


def _check_pool(pool: _Pool) -> Finding:
    policy = pool.policy
    if policy.ready:
        return ok(
            CHECK, pool.subject, f"{policy.image}:{policy.version or 'default'} runs, says its operator", _EXPECTED
        )
    for rule in (
        _report_unlabelled,
        _said,
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
        # no stage of a run makes it, so none waits for it
        why = (
            "Its operator does not say that the driver runs on these nodes: it may still be compiled, or can't come up."
        )
        remedy = (
            f"kubectl describe {policy.kind.lower()} {policy.name}, and the logs of its driver pods; run the stage"
            " again when it is ready."
        )
        return Finding(CHECK, pool.subject, UNKNOWN, _measured(pool), _EXPECTED, why, remedy)
    return ok(CHECK, pool.subject, _measured(pool), _EXPECTED)


def _measured(pool: _Pool) -> str:
    unsure = "" if pool.signed is not None else "; whether the kernel takes a module without a signature is not known"
    return f"{_way(pool)}: {pool.image}{unsure}"


def _way(pool: _Pool) -> str:
    if pool.digest:
        return "by digest"
    if pool.policy.precompiled:
        return "precompiled"
    by = "with OpenShift's driver toolkit" if pool.host.os == "rhcos" else "with packages of the distribution"
    # the GPU operator does not look for it
    instead = (
        f", or {driver_image(pool.policy, pool.host, True)} where the registry has it"
        if pool.policy.kind in OF_NICS
        else ""
    )
    return f"compiled on each node {by}, which takes minutes{instead}; nodes: {len(pool.nodes)}; image"


def _finding(pool: _Pool, status: typing.Literal["fail", "warn"], why: str, remedy: str) -> Finding:
    return Finding(CHECK, pool.subject, status, _measured(pool), _EXPECTED, f"{why}{pool.remark}", remedy)


def _report_unlabelled(pool: _Pool) -> typing.Optional[Finding]:
    """Both operators choose the image by labels of node feature discovery, and leave out a node without them."""
    host, missing = pool.host, []
    if not host.os or not host.version:
        missing.append("system-os_release.ID and VERSION_ID")
    if host.os == "rhcos" and not host.ostree and not pool.policy.precompiled and not pool.digest:
        missing.append("system-os_release.OSTREE_VERSION")
    if not missing:
        return None
    why = (
        f"The operator chooses the image by the label {' and '.join(missing)} of node feature discovery, and starts no"
        " driver on a node without it."
    )
    remedy = (
        f"Find out why node feature discovery does not write it: kubectl get node {pool.nodes[0]} --show-labels; its"
        " worker must run there."
    )
    return Finding(CHECK, pool.subject, FAIL, f"no such label on: {', '.join(pool.nodes[:10])}", _EXPECTED, why, remedy)


def _said(pool: _Pool) -> typing.Optional[Finding]:
    if not pool.policy.message:
        return None
    forced, _repositories = _KEYS[pool.policy.kind]
    remedy = (
        f"kubectl describe {pool.policy.kind.lower()} {pool.policy.name}; where it misses a precompiled image, build it"
        f" or set {forced} to false."
    )
    return _finding(pool, FAIL, f"The operator says: {pool.policy.message}.", remedy)


def _report_unsigned(pool: _Pool) -> typing.Optional[Finding]:
    if not pool.signed:
        return None
    policy, forced = pool.policy, _KEYS[pool.policy.kind][0]
    remedy = (
        "Build an image whose modules are signed with a key that the machines have (mokutil --import) and set"
        f" {forced}; or {_OWN[policy.kind]}; "
    )
    remedy += "or switch secure boot off."
    if policy.precompiled and policy.kind in OF_GPUS and pool.host.os == "ubuntu" and pool.of_nvidia:
        return None
    if pool.digest or (policy.precompiled and not pool.of_nvidia):
        why = (
            "The kernel loads only signed modules (secure boot), and nothing tells from here whether those of this"
            " image are."
        )
        return _finding(pool, WARN, why, remedy)
    return _finding(
        pool,
        FAIL,
        "The kernel loads only signed modules (secure boot), and those of this driver are not: 'Key was rejected by"
        " service'.",
        remedy,
    )


def _check_digest(pool: _Pool) -> typing.Optional[Finding]:
    if not pool.digest:
        return None
    why = (
        "A digest is one image for one system and one kernel, and for the operator a precompiled one: nothing tells"
        " from here for which."
    )
    return _finding(pool, WARN, why, f"skopeo inspect --no-tags docker://{pool.image} shows what it was built for.")


def _check_precompiled(pool: _Pool) -> typing.Optional[Finding]:
    if not pool.policy.precompiled:
        return None
    key = _KEYS[pool.policy.kind][0]
    flavor = next((name for name in _FLAVORS if pool.host.kernel.endswith(f"-{name}")), "")
    system = f"{pool.host.os}{pool.host.version}"
    if pool.of_nvidia and (system not in _PRECOMPILED or not flavor):
        why = (
            f"NVIDIA publishes precompiled drivers for {' and '.join(_PRECOMPILED)} with kernels {', '.join(_FLAVORS)}."
            " There must be a tag for this one."
        )
        return _finding(
            pool, WARN, why, f"Build it for kernel {pool.host.kernel} into a registry of yours, or set {key} to false."
        )
    why = "There must be an image for exactly this kernel. Whether the registry has it, is not known from here."
    remedy = f"skopeo inspect --no-tags docker://{pool.image}; where there is none build it, or set {key} to false."
    return _finding(pool, WARN, why, remedy)


def _check_system(pool: _Pool) -> typing.Optional[Finding]:
    if pool.host.os in _SYSTEMS or not pool.of_nvidia:
        return None
    why = f"NVIDIA publishes images for {', '.join(_SYSTEMS)}, and as far as known none for {pool.host.os}."
    remedy = (
        f"Use the driver of the node: {_OWN[pool.policy.kind]}. skopeo list-tags docker://{pool.policy.image} shows"
        " whether there is one by now."
    )
    return _finding(pool, WARN, why, remedy)


def _check_compiled(pool: _Pool) -> typing.Optional[Finding]:
    """Check what the driver needs to compile. On RHCOS nothing but the driver toolkit, which is a part of the
    release."""
    host, key = pool.host, _KEYS[pool.policy.kind][1]
    if host.os == "rhcos" or pool.policy.repositories:
        return None
    if host.os in _SUBSCRIBED:
        why = (
            f"Headers of kernel {host.kernel} come from repositories that need a subscription. The operator hands on"
            " that of the node."
        )
        remedy = (
            f"On the nodes, {_SUBSCRIBED[host.os]} must say that they are registered; or name a ConfigMap with a"
            f" repository of yours in {key}."
        )
        return _finding(pool, WARN, why, remedy)
    if pool.mirrored:
        why = (
            f"The cluster pulls images from mirrors, as sites without the internet do. Headers of kernel {host.kernel}"
            " are the distribution's."
        )
        remedy = f"Name a ConfigMap with repositories that the nodes reach in {key}, or use a precompiled image."
        return _finding(pool, WARN, why, remedy)
    return None


def _report_default_routes(
    policy: DriverPolicy,
    nodes: typing.Sequence[str],
    platforms: typing.Mapping[str, ObservedPlatform],
    hcas: typing.Mapping[str, ObservedHcas],
) -> typing.Iterator[Finding]:
    """Yield a warning of nodes that lose their way to the API server while the driver of their HCAs is taken out and
    loaded anew."""
    if policy.kind not in OF_NICS or policy.ready:
        return
    cut, unsure = [], []
    for name in nodes:
        shown, platform = (
            (hcas[name].value if name in hcas else None),
            (platforms[name].value if name in platforms else None),
        )
        reloaded = {
            netdev.name: hca.name
            for hca in (shown.hcas if shown else ())
            if hca.pci is not None and hca.pci.driver == _RELOADED
            for netdev in hca.all_netdevs
        }
        if reloaded and (platform is None or platform.uplinks is None):
            unsure.append(name)
            continue
        over = [
            f"{netdev} ({hca})" for netdev, hca in reloaded.items() if platform and netdev in (platform.uplinks or ())
        ]
        cut += [f"{name} over {' and '.join(over)}"] if over else []
    subject, expected = (
        f"{policy.kind} {policy.name}, default routes",
        "default routes over interfaces whose driver stays",
    )
    if cut:
        why = (
            f"The driver container takes {_RELOADED} out of the kernel and loads its own, and the interfaces are gone"
            " meanwhile. The node then reaches neither the API server nor the registry, and it stays away if its"
            " network configuration does not bring the interface back by itself."
        )
        remedy = (
            f"Lead the default route over another NIC (ip route show default), or {_OWN[policy.kind]}. Else let one"
            " node go first, with its console at hand: after the reload, ip route show default must show the same"
            " again."
        )
        yield Finding(CHECK, subject, WARN, folded(cut, _NAMED), expected, why, remedy)
    if unsure:
        why = (
            f"The routes of these nodes could not be read. The driver container reloads {_RELOADED}, and they have"
            " interfaces of it."
        )
        remedy = (
            f"Run ip route show default and ip -6 route show default on {unsure[0]} by hand. See platform.node for why"
            " they could not be read."
        )
        yield Finding(CHECK, subject, WARN, f"not known of {folded(unsure, _NAMED)}", expected, why, remedy)


def _check_kernels(policy: DriverPolicy, pools: typing.Sequence[_Pool]) -> Finding:
    subject = f"{policy.kind} {policy.name}"
    counts: dict[str, int] = {}
    for pool in pools:
        kind = f"{pool.host.os}{pool.host.version} {pool.host.kernel} {pool.host.machine}"
        counts[kind] = counts.get(kind, 0) + len(pool.nodes)
    kinds = [f"{kind} (nodes: {count})" for kind, count in counts.items()]
    measured, expected = "; ".join(kinds[:10]) + (f"; {len(kinds) - 10} more" if len(kinds) > 10 else ""), "one kernel"
    if len(kinds) == 1 or policy.ready:
        return ok(KERNELS, subject, measured, expected)
    if policy.version.startswith("sha256:"):
        why = "A digest is one image, and all nodes get it: it can load on one of these kernels alone."
        return Finding(
            KERNELS,
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Give the nodes one kernel, or name a version in place of the digest.",
        )
    why = (
        "Each kernel needs a precompiled image of its own."
        if policy.precompiled
        else "The driver is compiled for each kernel anew."
    )
    return Finding(
        KERNELS,
        subject,
        WARN,
        measured,
        expected,
        why,
        "Update the nodes to one kernel, or see that there is a driver for each.",
    )
