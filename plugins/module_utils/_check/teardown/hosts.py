# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of what a teardown leaves on the nodes: containerd's drop-in, kernel arguments and kernel settings. Check ids:
``teardown.*``.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED
from ..._model.base.phrases import format_clause
from ..._model.base.text import cut_text
from ..._model.intent.intent import ClusterIntent, Intent
from ..._model.kubernetes.host import DROP_IN, OF_INTENT, UNNAMED, ObservedText
from ..._model.node.file_owner import build_owner
from ..._model.node.kernel_arguments import DROP_IN as GRUB_DROP_IN
from ..._model.node.kernel_arguments import RECORD
from ..._model.node.node_tuning import SYSCTL, TMPFILES, ObservedSettings
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .facts import Facts

_LEAVE = (
    "If that intent needs the node, leave the file: the teardown of that intent removes it. If intent_name or"
    " node_selector of this intent was changed, so that the file is of this intent, or if no intent of that name"
    " is left, run on the node, as root: {command}"
)


_REMOVE_DROP_IN = f"rm {DROP_IN} && systemctl daemon-reload && systemctl restart containerd"


#: characters of a node's arguments in a finding
_MOST_SHOWN = 300


def check_drop_in(name: str, facts: Facts, intent: Intent) -> Finding:
    seen, expected = (
        facts.drop_ins.get(name, ObservedText(error=NOT_QUERIED)),
        "drop-in of linerate.rdma for the containerd unit: none",
    )
    if seen.value == "absent" and seen.error is None:
        return build_pass("teardown.drop_in", name, "none", expected)
    writer = _find_foreign_drop_in(seen.value, intent.cluster) if seen.error is None else ""
    if writer:
        return _check_foreign_drop_in(name, writer, expected)
    by_hand = f"On {name}, as root: rm {DROP_IN} && systemctl daemon-reload && systemctl restart containerd"
    if seen.value is not None and seen.error is None and name in facts.by_pods:
        why = (
            f"{DROP_IN} exists: it was created when the run reached the node by ssh. The run now reaches the node by a"
            " pod that inspects it, which changes nothing on the node."
        )
        return Finding(
            "teardown.drop_in",
            name,
            FAIL,
            f"drop-in of linerate.rdma for the containerd unit: {seen.value}",
            expected,
            why,
            f"{by_hand}. Or let Ansible reach the node by ssh again. Then run the teardown again.",
        )
    if seen.value is not None and seen.error is None:
        why = f"{DROP_IN} still exists: the teardown could not remove it, or another program created it again."
        return Finding(
            "teardown.drop_in",
            name,
            FAIL,
            f"drop-in of linerate.rdma for the containerd unit: {seen.value}",
            expected,
            why,
            f"{by_hand}. Then run the teardown again.",
        )
    why = f"It is unknown whether {DROP_IN} exists: {format_clause(seen.error)}."
    if name in facts.by_pods:
        remedy = (
            f"Run kubectl get pods -A -o wide --field-selector spec.nodeName={name} to find the pod that inspects"
            " the node. If it does not run, correct the cause that kubectl describe pod shows. Then run the"
            f" teardown again. Or run ls {DROP_IN} on {name}: it must not exist."
        )
        return Finding("teardown.drop_in", name, UNKNOWN, "drop-in not read", expected, why, remedy)
    why = f"It is unknown whether {DROP_IN} is gone and containerd runs without it: {format_clause(seen.error)}."
    # what it found it removes last, so that it is found again
    by_hand = f"rm -f {DROP_IN} && systemctl daemon-reload && systemctl restart containerd"
    remedy = (
        f"Run ansible {name} --become -m ansible.builtin.ping, and correct the error that it shows. Then run the"
        " teardown again: it restarts containerd before it removes the file. To remove the drop-in by hand"
        f" instead, run on {name}, as root: {by_hand}"
    )
    return Finding("teardown.drop_in", name, UNKNOWN, "drop-in not read", expected, why, remedy)


def check_kernel_arguments(name: str, facts: Facts) -> Finding:
    seen, by_pod = facts.kernel_arguments.get(name), name in facts.by_pods
    check_id, expected = "teardown.kernel_arguments", "0 kernel arguments of linerate.rdma set for the next boot"
    by_hand = (
        f"on {name}, as root: rm /{GRUB_DROP_IN} && update-grub (Debian, Ubuntu); or "
        f'grubby --update-kernel=ALL --remove-args="$(xargs < /{RECORD})" && rm /{RECORD} (RHEL and derivatives)'
    )
    if seen is None or seen.value is None or seen.error is not None:
        error = NOT_QUERIED if seen is None else format_clause(seen.error, "no data was returned")
        why = (
            f"It is unknown whether kernel arguments of linerate.rdma are still set for the next boot:"
            f" {format_clause(error)}."
        )
        if by_pod:
            remedy = (
                f"Run kubectl get pods -A -o wide --field-selector spec.nodeName={name} to find the pod that"
                " inspects the node. If it does not run, correct the cause that kubectl describe pod shows. Then"
                f" run the teardown again. Or run ls /{GRUB_DROP_IN} /{RECORD} on {name}: neither file must"
                " exist."
            )
            return Finding(check_id, name, UNKNOWN, "kernel arguments not read", expected, why, remedy)
        return Finding(
            check_id,
            name,
            UNKNOWN,
            "kernel arguments not read",
            expected,
            why,
            f"Run ansible {name} --become -m ansible.builtin.ping, and correct the error that it shows. Then run"
            f" the teardown again. To remove the arguments by hand instead, run {by_hand}.",
        )
    if seen.value:
        left = cut_text(" ".join(seen.value), _MOST_SHOWN)
        if by_pod:
            how = (
                "when the run reached the node by ssh. The run now reaches the node by a pod that inspects it, which"
                " changes nothing on the node"
            )
            why = f"The module kernel_arguments added {left} {how}."
            return Finding(
                check_id,
                name,
                FAIL,
                left,
                expected,
                why,
                (f"Run {by_hand}. Or let Ansible reach the node by ssh again. Then run the teardown again."),
            )
        why = "The module kernel_arguments added these arguments, and the teardown could not remove them."
        return Finding(
            check_id,
            name,
            FAIL,
            left,
            expected,
            why,
            f"Run the teardown again. If the arguments remain, run {by_hand}. Then run the teardown again.",
        )
    return build_pass(check_id, name, "none", expected)


def check_settings(name: str, seen: typing.Optional[ObservedSettings]) -> Finding:
    expected = "0 files that the module kernel_settings writes"
    if seen is not None and seen.value is not None and "changes" in seen.value and seen.error is None:
        stays = seen.value.get("stays")
        if isinstance(stays, list) and stays:
            return _check_foreign_settings(name, [str(item) for item in stays], expected)
        return build_pass("teardown.settings", name, "removed" if seen.value["changes"] else "none", expected)
    if seen is None:
        why = "The module kernel_settings did not run on the node, so the settings of linerate.rdma may still be there."
        remedy = (
            f"Look for a failed task on {name} in the output of ansible-playbook, and correct its cause. Then run"
            f" the teardown again, with {name} in --limit or without --limit."
        )
    else:
        why = (
            f"The module kernel_settings failed on the node: {format_clause(seen.error, 'it returned no data')}. The"
            " settings of linerate.rdma may still be there."
        )
        remedy = (
            f"Run ansible {name} --become -m ansible.builtin.ping, and correct its error if it fails. If it succeeds,"
            " run the teardown with -v, and correct the error of kernel_settings that it shows. Then run the teardown"
            " again."
        )
    return Finding("teardown.settings", name, UNKNOWN, "removal of the settings not confirmed", expected, why, remedy)


def _find_foreign_drop_in(state: typing.Optional[str], cluster: ClusterIntent) -> str:
    """Return the intent that wrote the drop-in of containerd, as the finding names it.

    The text is empty if the drop-in may be of this intent, and if there is no state.

    :param state: state of the drop-in that the node reports; None if it reports none
    :param cluster: settings of the intent
    """
    if state == UNNAMED:
        return "an earlier release, which recorded no intent"
    owner = (state or "")[len(OF_INTENT) :] if (state or "").startswith(OF_INTENT) else ""
    own = build_owner(cluster.intent_name, cluster.node_selector)
    return f"the intent '{owner}'" if owner and owner != own else ""


def _check_foreign_drop_in(name: str, writer: str, expected: str) -> Finding:
    """Return a warning on a drop-in of containerd that the teardown left.

    :param name: name of the node
    :param writer: intent that wrote it, as _find_foreign_drop_in returns it
    :param expected: expected value, as text for the finding
    """
    return Finding(
        "teardown.drop_in",
        name,
        WARN,
        f"drop-in for the containerd unit: a file of {writer}",
        expected,
        f"{DROP_IN} was written by {writer}, and this intent does not need it. The teardown left it.",
        _LEAVE.format(command=_REMOVE_DROP_IN),
    )


def _check_foreign_settings(name: str, stays: typing.Sequence[str], expected: str) -> Finding:
    """Return a warning on files of the module kernel_settings that the teardown left.

    :param name: name of the node
    :param stays: files with the name of their intent, as the module reports them
    :param expected: expected value, as text for the finding
    """
    files = " ".join(f"/{path}" for path in (SYSCTL, TMPFILES) if any(item.startswith(f"/{path} ") for item in stays))
    return Finding(
        "teardown.settings",
        name,
        WARN,
        ", ".join(stays),
        expected,
        f"The node has settings of another intent: {', '.join(stays)}. The teardown left them.",
        _LEAVE.format(command=f"rm -f {files}"),
    )
