# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules for the NCCL variables of a job, and for the interfaces and HCAs that they name."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import cut, folded
from ..._model.job.job import Variable
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, ok
from .nccl_variables import GONE, KNOWN, OTHERS, RELEASE, is_read
from .scope import Scope, read_integer

#: interfaces that every pod has
_OWN = ("lo", "eth0")
#: CNI plugins that give a pod a virtual function of its own, whose name is known only when the pod starts
_VIRTUAL = ("sriov", "ib-sriov")
_INFINIBAND = ("ib-sriov", "ipoib")
#: beginnings of the names of all HCAs of a driver, which look like names
_DRIVERS = ("mlx4", "mlx5")
#: characters of a list of names in a finding, of which each node and each pod may have one
_SHOWN = 400


def check_variables(scope: Scope) -> typing.Iterator[Finding]:
    """Check that NCCL reads each of the NCCL variables that the job sets."""
    check, expected = "job.nccl_variables", f"variables that NCCL {RELEASE} reads"
    found = [
        item
        for container in scope.template.containers
        for item in container.environment
        if item.name.upper().startswith("NCCL_")
    ]
    wrong = [item for item in found if not is_read(item.name)]
    for item in wrong:
        subject = f"{scope.subject} {item.name}"
        if item.name in GONE:
            why = (
                f"NCCL read this variable up to release {GONE[item.name]}. Later releases ignore it without a message."
            )
            yield Finding(
                check,
                subject,
                WARN,
                "no longer read",
                expected,
                why,
                "Remove the variable. If an old image needs it, waive this finding with that reason.",
            )
        else:
            near = scope.hints.nearest(item.name.upper(), KNOWN | OTHERS)
            why = (
                "NCCL does not read a variable of this name and reports no error. The job runs as if the variable were"
                " not set."
            )
            yield Finding(
                check,
                subject,
                FAIL,
                f"set in {item.place}",
                f"{expected}{near}",
                why,
                "Correct the name, or remove the variable.",
            )
    sources = [source for container in scope.workers for source in container.sources]
    if sources:
        why = f"Variables also come from {', '.join(sources)}, but job_lint does not read these objects."
        yield Finding(
            check,
            scope.subject,
            WARN,
            "envFrom",
            expected,
            why,
            "Write the NCCL variables into env of the container, so that job_lint can check them.",
        )
    if not wrong:
        yield ok(
            check,
            scope.subject,
            f"{count_of(len({item.name for item in found}), 'variable')}, all of them read",
            expected,
        )


def check_transport(scope: Scope) -> typing.Iterator[Finding]:
    """Check that no variable makes NCCL or UCX use another transport than RDMA."""
    check, expected = "job.transport", "no variable that keeps NCCL or UCX from RDMA"
    rdma = bool(scope.devices) or "network" in scope.claimed
    wrong: list[tuple[Variable, Status, str, str]] = []
    disable = scope.value("NCCL_IB_DISABLE")
    if disable and scope.tcp:
        if rdma:
            why = (
                "The variable disables RDMA, on InfiniBand and on RoCE. The job uses an RDMA device but sends over TCP."
            )
            wrong.append((disable, FAIL, why, "Set the variable to 0, or remove it."))
        else:
            wrong.append(
                (
                    disable,
                    WARN,
                    "The variable makes NCCL send over TCP. This is right only if the pods have no RDMA device.",
                    "Use an RDMA network, and remove the variable.",
                )
            )
    net = scope.value("NCCL_NET")
    if net and (net.value or "").lower() == "socket":
        wrong.append(
            (
                net,
                FAIL if rdma else WARN,
                "The variable makes NCCL send over TCP, even if the pod has RDMA devices.",
                "Remove the variable.",
            )
        )
    over_nodes = scope.value("NCCL_MNNVL_ENABLE")
    if over_nodes and over_nodes.value is not None and read_integer(over_nodes.value) == 0:
        why = (
            "The variable disables NVLink between nodes. On machines with NVLink between nodes, such as GB200 NVL72,"
            " the job sends only over the HCAs."
        )
        remedy = (
            "Remove the variable, and give the pods a claim of a ComputeDomain, which sets up IMEX. Keep the variable"
            " only to measure the HCAs."
        )
        wrong.append((over_nodes, WARN, why, remedy))
    index = scope.value("NCCL_IB_GID_INDEX")
    kinds = {kind for _request, item in scope.attachments() if item for kind in item.kinds}
    if index and kinds & set(_INFINIBAND):
        why = (
            "On InfiniBand, the index selects a subnet prefix and does not need to be set. Only RoCE needs a GID index."
        )
        wrong.append((index, WARN, why, "Remove the variable."))
    wrong += _list_wrong_of_ucx(scope, rdma)
    for variable, status, why, remedy in wrong:
        yield Finding(check, f"{scope.subject} {variable.name}", status, str(variable.value), expected, why, remedy)
    hiding = ("NCCL_IB_DISABLE", "NCCL_NET", "UCX_TLS", "UCX_NET_DEVICES")
    hidden = [name for name in hiding if (item := scope.value(name)) and item.value is None]
    if hidden:
        why = f"The value of {' and '.join(hidden)} is in another object, so it is unknown."
        yield Finding(check, scope.subject, UNKNOWN, "valueFrom", expected, why, "Write the value into the job.")
    elif not wrong:
        yield ok(check, scope.subject, "none", expected)


def _list_wrong_of_ucx(scope: Scope, rdma: bool) -> typing.Iterator[tuple[Variable, Status, str, str]]:
    """Yield the variables that keep UCX from using RDMA, each with status, cause and remedy. NIXL and MPI send over
    UCX.

    :param rdma: whether the pods get RDMA devices
    """
    transports, devices = scope.value("UCX_TLS"), scope.value("UCX_NET_DEVICES")
    if rdma and transports and transports.value and not _admits_rdma(transports.value):
        why = "The list contains no RDMA transport for UCX, so NIXL or MPI in the job sends over TCP."
        remedy = "Remove the variable, or add RDMA transports to the local transports: rc,sm,self,cuda_copy,cuda_ipc."
        yield transports, FAIL, why, remedy
    named = [item for item in (devices.value or "").split(",") if item] if devices else []
    without = named and not named[0].startswith("^") and not any(":" in item or item in ("all", "*") for item in named)
    if rdma and devices and without:
        why = (
            "The variable names only network interfaces, so UCX sends over TCP. The name of an RDMA device in UCX"
            " includes a port: mlx5_0:1."
        )
        yield devices, FAIL, why, "Remove the variable, or name RDMA devices of the pod with their ports."


def _admits_rdma(transports: str) -> bool:
    """Return whether a list of UCX transports permits one over RDMA. A list that begins with ``^`` excludes its
    items.
    """
    names = [item.strip().partition(":")[0] for item in transports.lstrip("^").split(",")]
    listed = {name.partition("_")[0] for name in names}
    if transports.startswith("^"):
        return not ("ib" in names or {"rc", "dc", "ud"} <= set(names))
    return bool(listed & {"all", "ib", "rc", "dc", "ud", "gga", "srd"}) or "*" in names


def check_evidence(scope: Scope) -> Finding:
    """Check that NCCL_DEBUG is INFO or TRACE, so that NCCL logs the transport of its channels. Without these lines, a
    job over TCP looks like a job over RDMA.
    """
    found = scope.value("NCCL_DEBUG")
    measured, expected = found.value if found and found.value else "not set", "INFO or TRACE"
    if measured.upper() in ("INFO", "TRACE"):
        return ok("job.evidence", scope.subject, measured, expected)
    why = (
        "Without level INFO, NCCL does not log the transport of each channel. A job over TCP then looks like a job"
        " over RDMA."
    )
    return Finding(
        "job.evidence",
        scope.subject,
        WARN,
        measured,
        expected,
        why,
        "Set NCCL_DEBUG to INFO. NCCL then writes a few lines at the start.",
    )


def check_interfaces(scope: Scope) -> typing.Iterator[Finding]:
    """Check that NCCL_SOCKET_IFNAME names interfaces that the pods have."""
    check, expected = "job.interfaces", "interfaces that the pods have"
    setting = scope.value("NCCL_SOCKET_IFNAME")
    if setting is None:
        yield ok(
            check, scope.subject, "NCCL_SOCKET_IFNAME is not set: NCCL uses the first interface that is up", expected
        )
        return
    subject = f"{scope.subject} NCCL_SOCKET_IFNAME"
    if setting.value is None:
        yield _check_in_another_object(check, subject, expected)
        return
    if scope.template.host_network:
        why = "The pods have the interfaces of their nodes, and job_lint does not read these."
        yield Finding(
            check,
            subject,
            WARN,
            setting.value,
            expected,
            why,
            "Compare the value with the output of 'ip link' on each node.",
        )
        return
    running = [item.interfaces for item in scope.world.pods] if scope.world else []
    sets = running or [tuple(request.interface for request in scope.template.networks)]
    choice, value = Choice.of(setting.value), cut(setting.value, _SHOWN)
    missing = sorted({pattern for interfaces in sets for pattern in choice.unmatched((*_OWN, *interfaces))})
    shown = ", ".join(sorted({*_OWN, *(name for interfaces in sets for name in interfaces)}))
    if missing and scope.claims_network and not running:
        why = (
            "No attachment creates the named interface. A device claim can provide it: the driver of the claim chooses"
            " the names of its interfaces."
        )
        yield Finding(
            check,
            subject,
            WARN,
            value,
            f"{expected}: {shown}",
            why,
            "Compare the value with the output of 'ip link' in a running pod, or with ifName of the claim.",
        )
    elif missing or not choice.patterns:
        why = (
            f"No attachment creates {_format_names(missing) or 'anything of that name'}. NCCL would stop, or use"
            " another interface."
        )
        yield Finding(
            check,
            subject,
            FAIL,
            value,
            f"{expected}: {shown}",
            why,
            "Name the interfaces of the annotation: net1, net2 ..., or the name after @ in the annotation.",
        )
    elif not any(choice.takes(name) for interfaces in sets for name in (*_OWN, *interfaces)):
        yield Finding(
            check,
            subject,
            FAIL,
            value,
            f"{expected}: {shown}",
            "The value excludes all interfaces of the pods.",
            "Leave at least one interface.",
        )
    else:
        yield ok(check, subject, value, f"{expected}: {shown}")


def check_hcas(scope: Scope) -> typing.Iterator[Finding]:
    """Check that NCCL_IB_HCA names the HCAs that the pods get."""
    check, subject, expected = "job.hcas", f"{scope.subject} NCCL_IB_HCA", "exactly the HCAs that the pods get"
    setting = scope.value("NCCL_IB_HCA")
    if setting is None:
        yield ok(
            check,
            scope.subject,
            "NCCL_IB_HCA is not set in the job: NCCL uses every device that the pod can open",
            expected,
        )
        return
    if setting.value is None:
        yield _check_in_another_object(check, subject, expected)
        return
    choice, value, remedy = (
        Choice.of(setting.value),
        cut(setting.value, _SHOWN),
        "Write the exact names after '=', such as =mlx5_1,mlx5_2.",
    )
    if not choice.patterns:
        yield Finding(
            check, subject, FAIL, f"'{value}'", expected, "The value names no HCA, so NCCL falls back to TCP.", remedy
        )
        return
    pods = [pod for pod in scope.world.pods if pod.devices] if scope.world else []
    if pods:
        yield from (_check_pod(check, f"{subject} of pod {pod.name}", choice, pod.devices, value) for pod in pods)
        return
    findings = []
    kinds = {kind for _request, item in scope.attachments() if item for kind in item.kinds}
    # pods get functions with other names than those of the node: of these only the beginning of all names of a driver
    # excludes all
    wide = not choice.exact and any(
        f"{driver}_".startswith(pattern) for driver in _DRIVERS for pattern in choice.patterns
    )
    given = bool(kinds & set(_VIRTUAL)) and not wide
    nodes = scope.world.devices if scope.world else {}
    # most nodes have the same names
    unmatched = {names: choice.unmatched(names) for names in set(nodes.values())}
    for node, names in sorted(nodes.items()):
        missing = unmatched[names]
        if missing and not choice.exclude:
            why = (
                f"The node has no HCA of this name: {_format_names(missing)}. NCCL ignores such a name without a"
                " message. If no name matches, NCCL falls back to TCP."
            )
            findings.append(
                Finding(
                    check,
                    f"{subject} on {node}",
                    FAIL,
                    value,
                    ", ".join(names) or "no HCA",
                    why,
                    (
                        "Write names that exist on this node, or remove NCCL_IB_HCA. Run ls /sys/class/infiniband on"
                        " each node: the names can differ between nodes."
                    ),
                )
            )
        elif names and choice.exclude and not given and not any(choice.takes(name) for name in names):
            why = "The value excludes each HCA of the node, so NCCL falls back to TCP without an error."
            findings.append(
                Finding(
                    check,
                    f"{subject} on {node}",
                    FAIL,
                    value,
                    ", ".join(names),
                    why,
                    "Leave at least one HCA, or remove NCCL_IB_HCA.",
                )
            )
    named = not choice.exclude and any(
        pattern[-1:].isdigit() and pattern not in _DRIVERS for pattern in choice.patterns
    )
    if named and kinds & set(_VIRTUAL):
        why = (
            "Each pod gets a different virtual function, and its name is known only when the pod starts. At most one"
            " pod gets the named virtual function."
        )
        findings.append(
            Finding(
                check,
                subject,
                FAIL,
                value,
                expected,
                why,
                "Determine the name when the pod starts, as the job of render_job does, or remove NCCL_IB_HCA.",
            )
        )
    elif named and not choice.exact:
        why = "The names are prefixes: mlx5_1 also matches mlx5_10 to mlx5_19."
        findings.append(Finding(check, subject, WARN, value, "exact names", why, remedy))
    yield from findings or [ok(check, subject, value, expected)]


def _check_pod(check: str, subject: str, choice: Choice, devices: tuple[str, ...], value: str) -> Finding:
    left, extra = (
        [name for name in devices if not choice.takes(name)],
        [] if choice.exclude else choice.unmatched(devices),
    )
    expected = ", ".join(devices)
    if not left and not extra:
        return ok(check, subject, value, expected)
    parts = [f"the value leaves out {', '.join(left)}"] if left else []
    parts += [f"the pod does not have {_format_names(extra)}"] if extra else []
    return Finding(
        check,
        subject,
        FAIL,
        value,
        expected,
        f"NCCL_IB_HCA does not match the devices of the pod: {'; '.join(parts)}.",
        "Name the devices of the pod, or remove NCCL_IB_HCA.",
    )


@dataclasses.dataclass(frozen=True)
class Choice:
    """The parsed value of NCCL_IB_HCA or NCCL_SOCKET_IFNAME: names of HCAs or interfaces. A leading ``^`` excludes the
    names, and a following ``=`` requires whole names; otherwise names are prefixes. A ``:port`` behind a name is
    ignored.
    """

    patterns: tuple[str, ...]
    exclude: bool
    exact: bool

    @classmethod
    def of(cls, value: str) -> Choice:
        text = value.strip()
        exclude = text.startswith("^")
        exact = text[exclude:].startswith("=")
        text = text[exclude + exact :]
        return cls(tuple(name for part in text.split(",") if (name := part.partition(":")[0].strip())), exclude, exact)

    def _is_pattern_match(self, pattern: str, name: str) -> bool:
        return name == pattern if self.exact else name.startswith(pattern)

    def takes(self, name: str) -> bool:
        return any(self._is_pattern_match(pattern, name) for pattern in self.patterns) != self.exclude

    def unmatched(self, names: typing.Iterable[str]) -> list[str]:
        """Return the patterns that match none of the names. Return an empty list if the value excludes names."""
        names = tuple(names)
        return (
            []
            if self.exclude
            else [
                pattern for pattern in self.patterns if not any(self._is_pattern_match(pattern, name) for name in names)
            ]
        )


def _format_names(names: typing.Sequence[str]) -> str:
    """Return a list of names from the job as text of at most ``_SHOWN`` characters, since it is repeated in a finding
    for each node and pod.
    """
    return cut(folded(names), _SHOWN)


def _check_in_another_object(check: str, subject: str, expected: str) -> Finding:
    """Return a finding of status unknown on a variable whose value comes from another object (valueFrom), such as a
    ConfigMap.
    """
    why, remedy = "The value is in another object, so it is unknown.", "Write the value into the job."
    return Finding(check, subject, UNKNOWN, "valueFrom", expected, why, remedy)
