# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the pods of stage collectives, their image, the messages that they sent, and their removal. Check ids:
``collectives.pod``, ``collectives.wanted``, ``collectives.steps``, ``collectives.cleanup``.
"""

from __future__ import annotations

import typing

from ..._analysis.schedule.collectives import SMALL, SOAK
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.measuring import BY_LIMIT
from ..._model.measurement.collectives import CollectivePod, Collectives, CollectivesFacts
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .judge import spell_bytes

_RUN_WITH_THIS_INTENT = (
    "Run stages bandwidth and collectives with the current intent: ansible-playbook linerate.rdma.site --tags"
    " bandwidth,collectives."
)


def check_image(wanted: Collectives, seen: CollectivesFacts) -> typing.Iterator[Finding]:
    """Yield a finding of status ``unknown`` if the tests ran in another image than that of the intent.

    They then prove nothing about the library and the plugins of the image in the intent.

    :param wanted: settings of the collectives in the intent
    :param seen: result of the module rdma_collectives: the pods and the completed tests
    """
    if seen.runs and seen.image != wanted.image:
        why = (
            "The tests ran in a different image, so they verify the library and the plugins of that image."
            if seen.image
            else "The results do not name the image in which the tests ran, so it is unknown which library and plugins"
            " they verify."
        )
        yield Finding(
            "collectives.wanted",
            "image",
            UNKNOWN,
            seen.image or "image of the tests not recorded",
            wanted.image,
            why,
            _RUN_WITH_THIS_INTENT,
        )


def check_sizes(wanted: Collectives, seen: CollectivesFacts) -> typing.Iterator[Finding]:
    """Check that the tests sent all message sizes from ``least_bytes`` to ``most_bytes`` of the intent.

    Yield a finding of status ``unknown`` if they ran with other limits, and a warning if nccl-tests reduced the largest
    size because the memory of the GPUs is too small. The program doubles the size from line to line of its table, so
    the largest size may be up to half below the limit.

    :param wanted: settings of the collectives in the intent
    :param seen: result of the module rdma_collectives: the pods and the completed tests
    """
    least, most = wanted.least_bytes, wanted.most_bytes
    other: set[tuple[int, int]] = set()
    beyond: set[tuple[int, int, int]] = set()
    reduced: set[int] = set()
    tables = 0
    for ran in seen.runs:
        if ran.figures is None or not ran.figures.rows or ran.change == SMALL:
            continue
        tables += 1
        sizes = [row.size_bytes for row in ran.figures.rows]
        limit = min(most, most if ran.figures.reduced_bytes is None else ran.figures.reduced_bytes)
        # a row that is larger than what memory is said to admit contradicts it
        credible = max(sizes) <= limit or limit == most
        if not credible or 2 * max(sizes) <= limit or (min(sizes) > least and ran.change != SOAK):
            if credible:
                other.add((min(sizes), max(sizes)))
            else:
                beyond.add((min(sizes), max(sizes), limit))
        elif limit < most:
            reduced.add(max(sizes))
    expected = f"{spell_bytes(least)} to {spell_bytes(most)}"
    if beyond:
        first, last, bound = min(beyond)
        measured = (
            f"{spell_bytes(first)} to {spell_bytes(last)}, although the test reported a limit of {spell_bytes(bound)}"
        )
        why = (
            "nccl-tests reports the largest message for which the memory of the GPUs suffices, and sends no larger"
            " message. So the table with these sizes is from another program."
        )
        program = next(iter(wanted.tests), "all_reduce")
        remedy = (
            f"The image {wanted.image} must contain the unchanged programs of nccl-tests. Run podman run --rm"
            f" --entrypoint head {wanted.image} -c 4 {wanted.program_folder}/{program}_perf. If it does not print ELF,"
            " the program is a script. Set rdma_cluster.collectives.image to an image with the unchanged programs, then"
            " run stage collectives again."
        )
        within = f"{expected}, and no message above the limit that the test reported"
        yield Finding("collectives.wanted", "sizes of messages", UNKNOWN, measured, within, why, remedy)
    elif other:
        first, last = min(other)
        measured = f"{spell_bytes(first)} to {spell_bytes(last)}"
        why = "The tests ran with other values of least_bytes and most_bytes than the current intent has."
        yield Finding(
            "collectives.wanted", "sizes of messages", UNKNOWN, measured, expected, why, _RUN_WITH_THIS_INTENT
        )
    elif reduced:
        why = (
            f"GPU memory is too small, so nccl-tests reduced the largest message. Each of {tables} tests reached at"
            f" least {spell_bytes(min(reduced))}."
        )
        remedy = f"Set rdma_cluster.collectives.most_bytes to {min(reduced)}, then run stage collectives again."
        yield Finding(
            "collectives.wanted",
            "sizes of messages",
            WARN,
            f"up to {spell_bytes(min(reduced))}",
            expected,
            why,
            remedy,
        )


def check_pod(fabric: Fabric, node: str, pod: typing.Optional[CollectivePod], ended: str = "") -> Finding:
    subject, rails = f"{fabric.name} {node}", fabric.select.hcas_per_node
    expected = f"a pod with the GPUs of the node and an HCA on each of {rails} rails"
    if pod is None:
        why = (
            f"The stage ended before it started a pod on this node: {format_clause(ended)}."
            if ended
            else "The stage ran with other nodes only: this node was added to the group rdma_nodes after its start."
        )
        return Finding(
            "collectives.pod",
            subject,
            UNKNOWN,
            "pod not started",
            expected,
            why,
            "Correct the error under 'why', then run stage collectives again."
            if ended
            else f"Run stage collectives again: it then also starts a pod on {node}.",
        )
    if pod.error:
        remedy = (
            (
                "Correct the error under 'why'. If it does not show the cause, run kubectl -n linerate-measure"
                f" describe pod {pod.name} while the stage runs, and read the events. Then run stage collectives"
                " again."
            )
            if pod.name
            else f"Follow the remedies of the findings of stage network and of stage virtual_functions on {node}, then"
            " run stage collectives again."
        )
        if pod.cause == "rail":
            remedy = (
                "The pod got two functions of one rail. Give each rail a resource of its own: declare one fabric"
                " for each rail in the intent. Or set topologyManagerPolicy of the kubelet, so that the device"
                " plugin spreads the functions over the rails. Then run stage collectives again."
            )
        if pod.cause == BY_LIMIT:
            remedy = f"Run stage collectives again, with {node} in --limit or without --limit."
        return Finding(
            "collectives.pod",
            subject,
            FAIL if pod.name else UNKNOWN,
            f"{pod.name} not usable" if pod.name else "pod not started",
            expected,
            f"{'The pod cannot be used' if pod.name else 'The stage started no pod'}: {format_clause(pod.error)}.",
            remedy,
        )
    missing = set(range(rails)) - {hca.rail for hca in pod.hcas}
    measured = ", ".join(f"{hca.device} rail {hca.rail}" for hca in pod.hcas)
    if missing:
        gone = ", ".join(map(str, sorted(missing)))
        why = (
            f"The stored results of the pod have no HCA on rail {gone} and no error. They may be from a run with"
            f" another intent. The intent requires rails 0 to {rails - 1} (hcas_per_node of the fabric {fabric.name})."
        )
        return Finding(
            "collectives.pod",
            subject,
            UNKNOWN,
            f"{measured or 'no HCA'}; no HCA on rail {gone}",
            expected,
            why,
            "Run stage collectives again with the current intent: if the pod has no HCA on this rail, the stage then"
            " reports the reason.",
        )
    if not pod.host:
        return Finding(
            "collectives.pod",
            subject,
            UNKNOWN,
            f"{measured}; host name of the pod unknown",
            f"{expected}, and its host name",
            "The stored results of the pod (facts/collectives in the folder of the report) have no host name, so its"
            " ranks cannot be found in the log of NCCL. This version of stage collectives always stores the host name,"
            " so it did not write these results.",
            "Run stage collectives again.",
        )
    return build_pass("collectives.pod", subject, measured, expected)


def check_ended(seen: CollectivesFacts) -> typing.Iterator[Finding]:
    if seen.ended:
        why = f"The stage ended before its last test: {format_clause(seen.ended)}."
        remedy = (
            "If the time limit ended the stage, set fewer collectives in rdma_cluster.collectives.tests."
            " Otherwise correct the error under 'why'. Then run stage collectives again."
        )
        yield Finding(
            "collectives.steps",
            "all collectives",
            UNKNOWN,
            f"{count_of(len(seen.runs), 'test')} run, the remaining tests not run",
            "all tests of rdma_cluster.collectives.tests run",
            why,
            remedy,
        )


def check_cleanup(seen: CollectivesFacts) -> Finding:
    expected = "0 pods left"
    if seen.remaining:
        why = (
            f"The stage could not delete {count_of(len(seen.remaining), 'pod')}: {join_first(seen.remaining, 16)}. A"
            " pod that is left keeps the GPUs of its node."
        )
        remedy = (
            f"Delete the pods: kubectl -n linerate-measure delete pod {' '.join(seen.remaining[:8])}. If a pod stays in"
            " Terminating, the kubelet of its node does not respond: run systemctl status kubelet there, and restart"
            " the kubelet. Then run stage collectives again."
        )
        return Finding(
            "collectives.cleanup", "pods", FAIL, f"{count_of(len(seen.remaining), 'pod')} left", expected, why, remedy
        )
    if seen.leftovers:
        why = (
            "An interrupted earlier run left these pods, and this run removed them before its tests:"
            f" {join_first(seen.leftovers, 16)}."
        )
        return Finding(
            "collectives.cleanup",
            "pods",
            WARN,
            f"0 pods left, {len(seen.leftovers)} of an earlier run removed",
            f"{expected}, also none of an earlier run",
            why,
            "No action is required, because this run has removed the pods.",
        )
    return build_pass("collectives.cleanup", "pods", "0 pods left", expected)
