# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules for the NCCL variables of a job, and for the interfaces that they name."""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import cut_text, join_first
from ..._model.job.job import Variable
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, build_pass
from .choice import (
    COMPUTED,
    FROM_OTHER,
    SHOWN,
    WRITE_COMPUTED,
    WRITE_VALUE,
    Choice,
    check_in_another_object,
    format_names,
    report_uncompared,
)
from .loopback import list_loopbacks
from .nccl_settings import list_harmful
from .nccl_variables import GONE, KNOWN, OTHERS, RELEASE, is_read
from .scope import LintedTemplate, read_integer

#: interfaces that every pod has
_OWN = ("lo", "eth0")
_INFINIBAND = ("ib-sriov", "ipoib")
#: interfaces in a finding, at most
_MOST_INTERFACES = 64


def check_variables(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that NCCL of release ``RELEASE`` reads each variable beginning with ``NCCL_`` that the job sets, to find
    misspelled names.

    :param scope: pod template of a job, and the cluster in which it would run
    """
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
                "no longer read by NCCL",
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
                f"unknown variable, set in {item.place}",
                f"{expected}{near}",
                why,
                "Correct the name, or remove the variable.",
            )
    files = _list_files(scope)
    if files:
        why = f"NCCL also takes variables from {', '.join(files)}, and job_lint does not read this file."
        remedy = "Write the NCCL variables into env of the container, so that job_lint can check them."
        yield Finding(check, scope.subject, WARN, "variables of a file not read", expected, why, remedy)
    sources = [source for container in scope.workers for source in container.sources]
    if sources:
        why = f"The containers also take variables from {', '.join(sources)}, and job_lint does not read these objects."
        yield Finding(
            check,
            scope.subject,
            WARN,
            "variables of envFrom not read",
            expected,
            why,
            "Write the NCCL variables into env of the container, so that job_lint can check them.",
        )
    if not wrong:
        yield build_pass(
            check,
            scope.subject,
            f"{count_of(len({item.name for item in found}), 'variable')}, all of them read",
            expected,
        )


def _list_files(scope: LintedTemplate) -> list[str]:
    """Return the files with variables that NCCL reads, which the job names or mounts. [src NVIDIA/nccl v2.30.7
    src/misc/param.cc initEnvFunc]

    :param scope: pod template of a job, and the cluster in which it would run
    """
    named = scope.value("NCCL_CONF_FILE")
    found = ["the file of NCCL_CONF_FILE"] if named is not None and named.value != "" else []
    paths = {path for container in scope.workers for path in container.mounts}
    return found + sorted(path for path in paths if path == "/etc/nccl.conf" or path.endswith("/.nccl.conf"))


def check_transport(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that no variable makes NCCL or UCX use another transport than RDMA, or harms RDMA.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, expected = (
        "job.transport",
        "no variable that keeps NCCL or UCX from RDMA, GPUDirect RDMA or NVLink, or reduces their rate",
    )
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
    wrong += list_harmful(scope) if rdma and not scope.tcp else ()
    for variable, status, why, remedy in wrong:
        measured = f"{variable.name}={variable.value}"
        yield Finding(check, f"{scope.subject} {variable.name}", status, measured, expected, why, remedy)
    hiding = ("NCCL_IB_DISABLE", "NCCL_NET", "UCX_TLS", "UCX_NET_DEVICES")
    computed = [name for name in hiding if scope.is_computed(name)]
    hidden = [name for name in hiding if (item := scope.value(name)) and item.value is None and name not in computed]
    for names, why, remedy in ((hidden, FROM_OTHER, WRITE_VALUE), (computed, COMPUTED, WRITE_COMPUTED)):
        if names:
            measured = f"value of {' and '.join(names)} not read"
            yield Finding(check, scope.subject, UNKNOWN, measured, expected, why, remedy)
    if not (wrong or hidden or computed):
        yield build_pass(check, scope.subject, "none", expected)


def _list_wrong_of_ucx(scope: LintedTemplate, rdma: bool) -> typing.Iterator[tuple[Variable, Status, str, str]]:
    """Yield the variables that keep UCX, over which NIXL and MPI send, from using RDMA.

    Each has its status, cause and remedy.

    :param scope: pod template of a job, and the cluster in which it would run
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
    """Return whether a list of UCX transports permits a transport over RDMA.

    A list that begins with ``^`` excludes its items.

    :param transports: value of UCX_TLS
    """
    names = [item.strip().partition(":")[0] for item in transports.lstrip("^").split(",")]
    listed = {name.partition("_")[0] for name in names}
    if transports.startswith("^"):
        return not ("ib" in names or {"rc", "dc", "ud"} <= set(names))
    return bool(listed & {"all", "ib", "rc", "dc", "ud", "gga", "srd"}) or "*" in names


def check_evidence(scope: LintedTemplate) -> Finding:
    """Check that NCCL_DEBUG is INFO or TRACE, and that neither NCCL_DEBUG_SUBSYS nor NCCL_DEBUG_FILE removes the lines
    of the ranks and of their channels from the log. Without these lines, the log does not show whether a job ran over
    TCP or over RDMA.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    found = scope.value("NCCL_DEBUG")
    level, expected = found.value if found and found.value else "not set", "NCCL_DEBUG INFO or TRACE"
    measured = f"NCCL_DEBUG {level}"
    why = (
        "Without level INFO, NCCL does not log the transport of each channel. A job over TCP then looks like a job"
        " over RDMA."
    )
    remedy = "Set NCCL_DEBUG to INFO. NCCL then writes a few lines at the start."
    if level.upper() in ("INFO", "TRACE"):
        parts, file = scope.value("NCCL_DEBUG_SUBSYS"), scope.value("NCCL_DEBUG_FILE")
        if parts and parts.value and not _logs_ranks(parts.value):
            measured = f"NCCL_DEBUG {level}, NCCL_DEBUG_SUBSYS {cut_text(parts.value, SHOWN)}"
            expected += ", with subsystem INIT"
            why = (
                "NCCL logs its ranks and the transport of their channels in subsystem INIT, which the value leaves out."
            )
            remedy = "Set NCCL_DEBUG_SUBSYS to INIT,NET, or remove the variable."
        elif file and (file.value or "").strip() == "/dev/null":
            measured, expected = f"NCCL_DEBUG_FILE {file.value}", f"{expected}, in a log that is kept"
            why = "NCCL discards its log, so no log shows the transport of each channel."
            remedy = "Remove NCCL_DEBUG_FILE, or set it to a file in a volume, such as /logs/nccl.%h.%p."
        else:
            return build_pass("job.evidence", scope.subject, measured, expected)
    return Finding("job.evidence", scope.subject, WARN, measured, expected, why, remedy)


def _logs_ranks(parts: str) -> bool:
    """Return whether NCCL logs the lines of its ranks, which are of subsystem INIT.

    A list that begins with ``^`` excludes its subsystems. [src NVIDIA/nccl v2.30.7 src/debug.cc]

    :param parts: value of NCCL_DEBUG_SUBSYS
    """
    names = {name.strip().upper() for name in parts.strip().lstrip("^").split(",")}
    return bool(names & {"INIT", "ALL"}) != parts.strip().startswith("^")


def check_interfaces(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Check that NCCL_SOCKET_IFNAME of a job names interfaces that its pods have, or is not set, and that the pods of a
    job do not meet at the loopback interface.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    check, expected = "job.interfaces", "interfaces that the pods have"
    at_loopback = tuple(list_loopbacks(scope))
    yield from at_loopback
    setting = scope.value("NCCL_SOCKET_IFNAME")
    if scope.is_computed("NCCL_SOCKET_IFNAME"):
        subject = f"{scope.subject} NCCL_SOCKET_IFNAME"
        yield Finding(check, subject, WARN, "value not read", expected, COMPUTED, WRITE_COMPUTED)
        return
    if any(item.subject.endswith(" NCCL_SOCKET_IFNAME") for item in at_loopback):
        return
    if setting is None:
        yield build_pass(
            check, scope.subject, "NCCL_SOCKET_IFNAME is not set: NCCL uses the first interface that is up", expected
        )
        return
    subject = f"{scope.subject} NCCL_SOCKET_IFNAME"
    if setting.value is None:
        yield check_in_another_object(check, subject, expected)
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
    running = scope.surroundings.interface_sets if scope.surroundings else ()
    sets = running or (tuple(request.interface for request in scope.template.networks),)
    choice, value = Choice.parse(setting.value), cut_text(setting.value, SHOWN)
    if scope.budget.is_spent or not scope.budget.spend(len(choice.patterns) * sum(map(len, sets))):
        yield report_uncompared(check, subject, value, expected, f"{len(sets)} different lists of interfaces")
        return
    missing = sorted({pattern for interfaces in sets for pattern in choice.unmatched((*_OWN, *interfaces))})
    shown = join_first(sorted({*_OWN, *(name for interfaces in sets for name in interfaces)}), _MOST_INTERFACES)
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
            f"No attachment creates {format_names(missing)}. NCCL would stop, or use another interface."
            if missing
            else "The value names no interface."
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
            "Name at least one interface of the pods in NCCL_SOCKET_IFNAME, or remove the variable.",
        )
    else:
        yield build_pass(check, subject, value, f"{expected}: {shown}")
