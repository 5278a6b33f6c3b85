# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the driver containers of NVIDIA's operators before their policies are applied: the image for each kernel, and
its requirements.

Check ids: ``operators.driver``, ``operators.driver_kernels``.

Later stages prove that the driver works: stage network waits for it, and the stages virtual_functions, host and
bandwidth measure it. So a property that cannot be known yet, such as whether a registry has an image, is a warning with
the command that shows it.

- A driver is compiled on the node, or precompiled for its kernel. The network operator searches for the tag of the
  precompiled image and uses it if it exists. With forcePrecompiled it uses no other image. The GPU operator uses a
  precompiled image only with usePrecompiled.
- Compiling needs the headers of the running kernel: from OpenShift's driver toolkit on RHCOS, from packages on other
  systems. For these packages, RHEL and SLES need the subscription of the node, which the operator passes on. A site
  without internet access needs a package repository of its own (repoConfig).
- NVIDIA signs neither modules that are compiled on a node nor its precompiled images of DOCA-OFED. Images of the GPU
  driver for Ubuntu are built from Canonical's packages.

[Mellanox/network-operator pkg/state/state_ofed.go renderObjects, handleSubscriptionVolumes; network-operator-docs
docs/platform-support.rst; NVIDIA/gpu-operator internal/state/driver.go; cloud-native-docs
gpu-operator/precompiled-drivers.rst; Mellanox/doca-driver-build entrypoint.sh]
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
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
)
from ..._model.operators.operators import OperatorsSeen
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .driver_pools import CHECK, EXPECTED, OWN_DRIVER, VERSION_KEYS, DriverPool, check_pool, list_pools

KERNELS = "operators.driver_kernels"
#: kernel module that the driver container of the HCAs unloads
_RELOADED = "mlx5_core"
#: nodes that a finding names
_NAMED = 10
#: nodes of one kernel that a finding names
_NAMED_OF_KERNEL = 4


def check(
    intent: Intent,
    seen: typing.Optional[OperatorsSeen],
    platforms: typing.Mapping[str, ObservedPlatform],
    hcas: typing.Mapping[str, ObservedHcas],
    mirrored: bool,
) -> typing.Iterator[Finding]:
    """Yield the findings on the driver policies.

    A policy with a driver container gets one finding for each pool of nodes, one on the number of kernels, and warnings
    about default routes. A policy without a driver container passes, unless another policy replaces it.

    If the policies were not read, yield one finding of status ``unknown`` if the intent needs a driver container, else
    nothing.

    :param seen: answer of operators_info; None if it did not run
    :param platforms: platforms of the nodes, which show whether the kernel needs signed modules
    :param hcas: HCAs of the nodes, which show whether the nodes' own driver suffices
    :param mirrored: whether the cluster pulls images from mirrors, as sites without internet access do
    """
    if seen is None or seen.errors:
        # operators.needed reports the errors
        if _wants_driver(intent):
            why = (
                "The API server did not return all driver policies and nodes. The finding operators.needed contains its"
                " errors."
            )
            yield Finding(
                CHECK,
                f"{NIC} {NIC_POLICY}",
                UNKNOWN,
                "driver policies and nodes not read",
                EXPECTED,
                why,
                "Correct the causes in the findings operators.needed and operators.read, then run stage operators"
                " again.",
            )
        return
    policies = list(_list_policies(intent, seen))
    missing = sorted(hcas.keys() - {host.name for host in seen.hosts}) if _wants_driver(intent) else []
    if missing:
        why = (
            "The API server lists no nodes of these names, so their kernel, and the driver image for it, are unknown:"
            f" {join_first(missing, 8)}."
        )
        yield Finding(
            CHECK,
            f"{NIC} {NIC_POLICY}, nodes",
            UNKNOWN,
            f"kernel unknown on {len(missing)} of {count_of(len(hcas), 'node')}",
            EXPECTED,
            why,
            "Compare the names of the hosts in the inventory with kubectl get nodes, and correct them. Then run stage"
            " operators again.",
        )
    for policy in policies:
        hosts = [
            host
            for host in seen.hosts
            if (host.gpu or policy.kind not in OF_GPUS) and (policy.nodes is None or host.name in policy.nodes)
        ]
        if not policy.container and any(other.container and _is_for_same_devices(other, policy) for other in policies):
            # a policy for some of the nodes brings the driver, and has findings of its own
            continue
        if not policy.container:
            yield build_pass(
                CHECK,
                f"{policy.kind} {policy.name}",
                "no driver container, the nodes use their own driver",
                EXPECTED,
            )
        elif hosts:
            remark = _describe_own_driver(policy, intent, hosts, hcas)
            pools = list_pools(policy, hosts, platforms, mirrored, remark)
            yield from map(check_pool, pools)
            yield _check_kernels(policy, pools)
            yield from _report_default_routes(policy, [host.name for host in hosts], platforms, hcas)


def _wants_driver(intent: Intent) -> bool:
    return intent.cluster.network_operator.ofed_driver is not None and any(map(needs_nic_policy, intent.fabrics))


def _list_policies(intent: Intent, seen: OperatorsSeen) -> typing.Iterator[DriverPolicy]:
    """Yield the driver policies as they will be after the run.

    If the intent sets a DOCA-OFED driver, its driver replaces that of the NicClusterPolicy that the operator uses.

    :param seen: operators that the cluster has
    """
    there = next((policy for policy in seen.drivers if (policy.kind, policy.name) == (NIC, NIC_POLICY)), None)
    if _wants_driver(intent):
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


def _is_for_same_devices(other: DriverPolicy, policy: DriverPolicy) -> bool:
    return any({other.kind, policy.kind} <= {*kinds} for kinds in (OF_NICS, OF_GPUS))


def _describe_own_driver(
    policy: DriverPolicy, intent: Intent, hosts: typing.Iterable[DriverHost], hcas: typing.Mapping[str, ObservedHcas]
) -> str:
    """Return a remark that the nodes' own driver suffices, if all nodes of the policy have RDMA devices and the intent
    does not need DOCA-OFED. Return an empty text otherwise.

    :param hosts: nodes that the policy selects
    :param hcas: HCAs of each node, by node
    """
    if policy.kind != NIC or policy.ready or intent.cluster.host.gpudirect == "peermem":
        return ""
    seen = [hcas[host.name].value for host in hosts if host.name in hcas]
    driven = [node is not None and any(hca.rdma_device for hca in node.hcas) for node in seen]
    if not driven or not all(driven):
        return ""
    return (
        " The HCAs of the nodes already have RDMA devices. Without rdma_cluster.network_operator.ofed_driver, no driver"
        " container is needed."
    )


def _report_default_routes(
    policy: DriverPolicy,
    nodes: typing.Sequence[str],
    platforms: typing.Mapping[str, ObservedPlatform],
    hcas: typing.Mapping[str, ObservedHcas],
) -> typing.Iterator[Finding]:
    """Warn about nodes that lose their default route while the driver of their HCAs is reloaded, and about nodes whose
    routes are not known.

    :param nodes: names of the nodes of the policy
    :param platforms: platforms of the nodes, with the interfaces of their default routes
    :param hcas: HCAs of each node, by node
    """
    if policy.kind not in OF_NICS or policy.ready:
        return
    cut: list[str] = []
    unsure: dict[str, tuple[str, ...]] = {}
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
            unsure[name] = tuple(reloaded)
            continue
        over = [
            f"{netdev} ({hca})" for netdev, hca in reloaded.items() if platform and netdev in (platform.uplinks or ())
        ]
        cut += [f"{name} over {' and '.join(over)}"] if over else []
    subject, expected = (
        f"{policy.kind} {policy.name}, default routes",
        "default routes over interfaces whose driver is not reloaded",
    )
    if cut:
        why = (
            f"The driver container unloads {_RELOADED} and loads its own driver. Until then, the interfaces do not"
            " exist, and the node reaches neither the API server nor the registry. The node stays unreachable if its"
            " network configuration does not restore the interface automatically."
        )
        remedy = (
            f"Move the default route to another NIC (ip route show default), or {OWN_DRIVER[policy.kind]}. Otherwise"
            " apply the policy to one node first, with access to its console. After the reload, ip route show default"
            " must show the same route again. Then run stage operators again."
        )
        yield Finding(CHECK, subject, WARN, join_first(cut, _NAMED), expected, why, remedy)
    if unsure:
        why = (
            f"The routes of these nodes were not read. The nodes have interfaces with the driver {_RELOADED}, which"
            " the driver container reloads. A node with a default route over such an interface loses its connection."
        )
        names = list(unsure)
        netdevs = join_first(unsure[names[0]], _NAMED)
        remedy = (
            f"On {names[0]}, run ip route show default and ip -6 route show default. If a default route uses"
            f" {netdevs}, move it to an interface of another driver. Follow the remedy of the"
            " finding platform.node, then run stages platform and operators again."
        )
        measured = f"routes unknown on {join_first(names, _NAMED)}"
        yield Finding(CHECK, subject, WARN, measured, expected, why, remedy)


def _check_kernels(policy: DriverPolicy, pools: typing.Sequence[DriverPool]) -> Finding:
    subject = f"{policy.kind} {policy.name}"
    names: dict[str, list[str]] = {}
    for pool in pools:
        kind = f"{pool.host.os}{pool.host.version} {pool.host.kernel} {pool.host.machine}"
        names.setdefault(kind, []).extend(pool.nodes)
    kinds = [f"{kind} on {join_first(nodes, _NAMED_OF_KERNEL)}" for kind, nodes in names.items()]
    measured, expected = (
        "; ".join(kinds[:10])
        + (f"; {len(kinds) - 10} more (kubectl get nodes -o wide lists all)" if len(kinds) > 10 else ""),
        "the same kernel on all nodes",
    )
    if len(kinds) == 1 or policy.ready:
        return build_pass(KERNELS, subject, measured, expected)
    if policy.version.startswith("sha256:"):
        why = (
            "The policy names the image of the driver by its digest, which is one image for all nodes. Its driver can"
            " load on only one of these kernels."
        )
        of_intent = (
            ", or rdma_cluster.network_operator.ofed_driver of the intent if it is set," if policy.kind == NIC else ""
        )
        return Finding(
            KERNELS,
            subject,
            FAIL,
            measured,
            expected,
            why,
            f"Let all nodes run the same kernel, or set {VERSION_KEYS[policy.kind]} of {subject}{of_intent} to a"
            " version of the driver instead of the digest. Then run stage operators again.",
        )
    why = (
        "Each kernel needs its own precompiled image. The nodes of a kernel without an image get no driver."
        if policy.precompiled
        else "The driver container is built or compiled for each kernel separately. If this fails for a kernel, its"
        " nodes get no driver."
    )
    return Finding(
        KERNELS,
        subject,
        WARN,
        measured,
        expected,
        why,
        "Update the nodes to the same kernel. If the kernels differ on purpose, check that the registry has a"
        " driver for each kernel, and waive this finding. Then run stage operators again.",
    )
