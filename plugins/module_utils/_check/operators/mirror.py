# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the mirror of a disconnected site has all images and charts that a run would pull, before the run applies
anything. Check id: ``operators.mirror``.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Intent
from ..._model.intent.mirror import MirrorAnswer, MirrorFacts
from ..._model.intent.profiles import HOST_DEVICE, IPOIB, attachment_kind, needs_nic_policy
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok
from ..._parse.kubernetes.images import reference
from ..._parse.kubernetes.resource import ResourceError

_ID = "operators.mirror"
_EXPECTED = "on the mirror before anything is applied"


def check(intent: Intent, seen: typing.Optional[MirrorFacts]) -> tuple[Finding, ...]:
    """Return the findings on the mirror; none if the intent has no mirror.

    There is a finding for each image and chart that the mirror has or lacks, each registry without a usable answer,
    each image of the intent that was not queried, each chart whose images are unknown, and each image whose name in a
    chart cannot be changed to that on the mirror.
    """
    if not intent.cluster.mirror:
        return ()
    if seen is None:
        why = "Nobody asked the mirror what it has."
        return (
            Finding(
                _ID,
                "mirror",
                UNKNOWN,
                "not asked",
                _EXPECTED,
                why,
                "Run stage operators again; its task images_info says why it gave no answer.",
            ),
        )
    findings = [_check_mirror_answer(answer) for answer in seen.answers if answer.state in ("there", "missing")]
    for state in ("refused", "silent"):
        by_cause: dict[tuple[str, str], list[MirrorAnswer]] = {}
        for answer in seen.answers:
            if answer.state == state:
                by_cause.setdefault((answer.place.partition("/")[0], answer.said), []).append(answer)
        findings += [_report_untold(host, said, state, answers) for (host, said), answers in by_cause.items()]
    findings += [_report_unlisted(problem) for problem in seen.unlisted]
    findings += _report_unasked(intent, seen)
    return (*findings, *(_report_elsewhere(problem) for problem in seen.elsewhere))


def _report_unasked(intent: Intent, seen: MirrorFacts) -> typing.Iterator[Finding]:
    """Report images of the intent about which no registry was queried. Images that only charts name are not checked,
    since only Helm knows them.
    """
    asked = {_parse_image_identity(answer.place) for answer in seen.answers}
    for image, who in _list_needed_images(intent):
        name = _parse_image_identity(image)
        # of what is no name, or has no registry, the list says so
        if name not in asked and not any(who in problem for problem in seen.unlisted):
            why = (
                f"The answers say nothing of {name or image}, which {who} need: they are about another intent, or not"
                " whole."
            )
            yield Finding(
                _ID, name or image, UNKNOWN, "not asked", _EXPECTED, why, "Run stage operators again with this intent."
            )


def _list_needed_images(intent: Intent) -> typing.Iterator[tuple[str, str]]:
    """Yield the name of each image that the intent needs, with the component that needs it."""
    for fabric in intent.fabrics:
        if fabric.pods.image_pull_policy != "Never":
            yield fabric.pods.image, f"pods of fabric {fabric.name}"
    if intent.cluster.collectives is not None:
        yield intent.cluster.collectives.image, "pods of stage collectives"
    if not any(map(needs_nic_policy, intent.fabrics)):
        return
    operator, kinds = intent.cluster.network_operator, {attachment_kind(fabric) for fabric in intent.fabrics}
    parts = {
        "k8s-rdma-shared-dev-plugin": any(fabric.profile == "rdma_shared" for fabric in intent.fabrics),
        "sriov-network-device-plugin": HOST_DEVICE in kinds,
        "ipoib-cni": IPOIB in kinds,
        "nvidia-k8s-ipam": operator.nv_ipam,
        "nic-feature-discovery": operator.nic_feature_discovery,
    }
    yield from (
        (f"{operator.repository}/{part}:network-operator-{operator.version}", "parts of NicClusterPolicy")
        for part, runs in parts.items()
        if runs
    )
    if operator.ofed_driver:
        yield f"{operator.repository}/doca-driver:{operator.ofed_driver}", "parts of NicClusterPolicy"


def _parse_image_identity(image: str) -> str:
    """Return the name by which registries are queried; empty if the text is not a valid image name."""
    try:
        return reference(image).identity
    except ResourceError:
        return ""


def _check_mirror_answer(answer: MirrorAnswer) -> Finding:
    subject = f"{answer.source}{'-*' if answer.by_system else ''}"
    if answer.state == "there":
        return ok(_ID, subject, f"{answer.place}{f': {answer.said}' if answer.said else ''}", _EXPECTED)
    why = f"The registry has no {answer.place}: {answer.said}. Needed by: {', '.join(answer.needed_by)}."
    remedy = f"Where the internet is: {' && '.join(answer.put)}"
    if answer.by_system:
        remedy += (
            " (SYSTEM is that of your nodes, such as ubuntu24.04 or rhcos4.20; or use skopeo-sync.yml of playbook"
            " images, which takes all)"
        )
    return Finding(_ID, subject, FAIL, f"not there: {answer.place}", _EXPECTED, why, remedy)


def _report_untold(host: str, said: str, state: str, answers: typing.Sequence[MirrorAnswer]) -> Finding:
    names = ", ".join(answer.place for answer in answers[:5]) + (
        f" and {len(answers) - 5} more" if len(answers) > 5 else ""
    )
    subject, measured = f"registry {host}", f"{len(answers)} images and charts: {said}"
    if state == "refused":
        why = (
            f"The registry does not let us look, so nobody knows whether it has {names}. Some answer so of what is not"
            " there as well."
        )
        remedy = (
            f"skopeo login --authfile FILE {host}, then run the stage again with -e operators_registry_auth_file=FILE."
            " Nodes have pull secrets of their own."
        )
        return Finding(_ID, subject, UNKNOWN, measured, _EXPECTED, why, remedy)
    why = f"The registry gave no answer that says whether it has {names}."
    remedy = (
        f"Look from this machine: curl -v https://{host}/v2/. Where its certificate is not trusted: -e"
        " operators_registry_ca=FILE. Then run the stage again."
    )
    return Finding(_ID, subject, UNKNOWN, measured, _EXPECTED, why, remedy)


def _report_unlisted(problem: str) -> Finding:
    subject = problem.partition(":")[0]
    remedy = (
        "Put the chart, or what the text names, onto the mirror, and run the stage again; its own finding has the"
        " command."
    )
    return Finding(_ID, subject, UNKNOWN, "not known what it pulls", _EXPECTED, problem, remedy)


def _report_elsewhere(problem: str) -> Finding:
    operator, _colon, image = problem.partition(": ")
    why = (
        f"The chart names {image} in a way that its values were not seen to change, so nodes would pull it from there,"
        " and not from the mirror."
    )
    remedy = (
        f"Set the image in values of operators_charts for {operator.partition(' ')[2]}, or have the nodes' container"
        " runtime take it from the mirror."
    )
    return Finding(_ID, f"{operator}, {image}", FAIL, f"from elsewhere: {image}", _EXPECTED, why, remedy)
