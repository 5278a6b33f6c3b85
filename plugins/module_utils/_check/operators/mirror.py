# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the mirror of a disconnected site has all images and charts that a run would pull, before the run applies
anything. Check id: ``operators.mirror``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Intent
from ..._model.intent.mirror import MirrorAnswer, MirrorFacts
from ..._model.intent.profiles import HOST_DEVICE, IPOIB, attachment_kind, needs_nic_policy
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from ..._parse.kubernetes.images import parse_reference
from ..._parse.kubernetes.resource import ResourceError

_ID = "operators.mirror"


def check(intent: Intent, seen: typing.Optional[MirrorFacts]) -> tuple[Finding, ...]:
    """Check that the mirror of the intent has each image and chart that a run would pull. The result is empty if the
    intent has no mirror.

    There is a finding for each image and chart that the mirror has or lacks, each registry without a usable answer,
    each image of the intent that was not queried, each chart whose images are unknown, and each image whose name in a
    chart cannot be changed to that on the mirror.

    :param seen: answers of the registries; None if none was queried
    """
    if not intent.cluster.mirror:
        return ()
    if seen is None:
        why = "The run ended before it asked the mirror for its images and charts."
        return (
            Finding(
                _ID,
                "mirror",
                UNKNOWN,
                "images and charts not queried",
                "all images and charts that the run pulls present on the mirror",
                why,
                "Run stage operators again. If the finding remains, correct the error of the task with the module"
                " images_info in the output of ansible-playbook.",
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
    """Yield a finding of status ``unknown`` for each image of the intent about which no registry was queried. Images
    that only charts name are not checked, since only Helm knows them.

    :param seen: answers of the registries
    """
    asked = {_parse_image_identity(answer.place) for answer in seen.answers}
    for image, who in _list_needed_images(intent):
        name = _parse_image_identity(image)
        # of what is no name, or has no registry, the list says so
        if name not in asked and not any(who in problem for problem in seen.unlisted):
            why = (
                f"The run asked the mirror for other images, but not for this image, which {who} need. The intent was"
                " changed after the run started."
            )
            yield Finding(
                _ID,
                name or image,
                UNKNOWN,
                "image not queried",
                "image present on the mirror",
                why,
                "Run stage operators again with the current intent.",
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
    """Return the name by which registries are queried; empty if the text is not a valid image name.

    :param image: name of an image, with a tag or a digest
    """
    try:
        return parse_reference(image).identity
    except ResourceError:
        return ""


def _check_mirror_answer(answer: MirrorAnswer) -> Finding:
    subject = f"{answer.source}{'-*' if answer.by_system else ''}"
    expected = f"{_name_kind([answer])} present on the mirror"
    if answer.state == "there":
        return build_pass(_ID, subject, f"{answer.place}{f': {answer.said}' if answer.said else ''}", expected)
    why = (
        f"The {_name_kind([answer])} was not copied to the mirror, or was deleted"
        f" there{f' ({format_clause(answer.said)})' if answer.said else ''}. Needed"
        f" by: {join_first(answer.needed_by)}."
    )
    remedy = f"On a machine that reaches both registries, run: {' && '.join(answer.put)}"
    if answer.by_system:
        remedy += (
            " (SYSTEM is the operating system of your nodes, such as ubuntu24.04 or rhcos4.20; or use skopeo-sync.yml"
            " of playbook images, which copies the images of all systems)"
        )
    remedy += ". Then run stage operators again."
    return Finding(
        _ID, subject, FAIL, f"{_name_kind([answer])} missing on the mirror: {answer.place}", expected, why, remedy
    )


def _name_kind(answers: typing.Sequence[MirrorAnswer]) -> str:
    """Return the noun for the subjects of these answers, in the right number: ``image``, ``charts``, ``images and
    charts``.
    """
    charts = sum(any("helm" in command for command in answer.put) for answer in answers)
    if not charts:
        return "image" if len(answers) == 1 else "images"
    if charts == len(answers):
        return "chart" if len(answers) == 1 else "charts"
    return "images and charts"


def _report_untold(host: str, said: str, state: str, answers: typing.Sequence[MirrorAnswer]) -> Finding:
    names = join_first([answer.place for answer in answers], 5)
    subject, measured, expected = (
        f"registry {host}",
        f"{len(answers)} {_name_kind(answers)} not verified: {said or 'no answer'}",
        f"{len(answers)} {_name_kind(answers)} present on the mirror",
    )
    if state == "refused":
        why = (
            f"The registry denies access, so whether it has {names} is unknown. Some registries also deny access to"
            " images that do not exist."
        )
        remedy = (
            f"Run skopeo login --authfile FILE {host} on the controller, and add -e"
            " operators_registry_auth_file=FILE to ansible-playbook. The nodes need pull secrets of their own. Then"
            " run stage operators again."
        )
        return Finding(_ID, subject, UNKNOWN, measured, expected, why, remedy)
    why = (
        f"The registry did not answer the request with a list of tags or a manifest. It must have {names}."
        if said
        else f"The registry gave no answer. It must have {names}."
    )
    remedy = (
        f"On the controller, run curl -v https://{host}/v2/, and correct the error that it prints. If it does not trust"
        " the certificate of the registry, add -e operators_registry_ca=FILE (the CA in PEM) to ansible-playbook. Then"
        " run stage operators again."
    )
    return Finding(_ID, subject, UNKNOWN, measured, expected, why, remedy)


def _report_unlisted(problem: str) -> Finding:
    subject = problem.partition(":")[0]
    why = (
        "The run could not determine which images this operator needs, so it did not check the mirror for them."
        f" The error is: {format_clause(problem)}."
    )
    remedy = (
        "If the error names a missing chart or image, copy it to the mirror (the finding on the chart contains the"
        " command), or correct its name in the intent. Otherwise correct the error. Then run stage operators again."
    )
    return Finding(
        _ID,
        subject,
        UNKNOWN,
        "images of the chart not determined",
        "all images of the chart present on the mirror",
        why,
        remedy,
    )


def _report_elsewhere(problem: str) -> Finding:
    operator, _colon, image = problem.partition(": ")
    named = f"the image {image}" if image else "an image whose name is unknown"
    why = (
        f"The templates of the chart name {named}, and the values of the chart do not change this name. So the nodes"
        " would pull the image from its original registry and not from the mirror."
    )
    chart = operator.partition(" ")[2] or operator
    remedy = (
        f"If the chart has a value for this image (helm show values CHART), set it for {chart} in operators_charts."
        " Otherwise configure the container runtime of the nodes to pull the image from the mirror. Then run stage"
        " operators again."
    )
    if not image:
        remedy = f"Run helm template CHART | grep image: to list the images of the chart. {remedy}"
    measured = f"{named}, pulled from its original registry"
    subject = f"{operator}, {image or 'image without a name'}"
    return Finding(_ID, subject, FAIL, measured, "image from the mirror", why, remedy)
