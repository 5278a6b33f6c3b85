# SPDX-License-Identifier: GPL-3.0-or-later

"""Validate ``rdma_cluster.collectives``: find contradictions and values that the loader does not detect. Pure."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.measurement.small_messages import explain_far_ratio
from ..._model.base.load_error import suggest_nearest
from ..._model.base.rules import run_rule, run_rules
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_rdma
from ..._model.measurement.collectives import Collectives, TestName
from .floor import pick_least_share

#: share below which a floor tells nothing: one rail less of eight, and a quarter for what a collective costs
_LEAST_SHARE = 0.5
#: seconds that a run of 20 iterations of 8 GiB takes at least, with the start of its ranks
_LEAST_SECONDS = 30
MOST_GPUS = 64
#: of a message
_LEAST_BYTES = 65536
#: of the latency of a pair to the median
_MOST_RATIO = 100
#: minutes
_MOST_SOAK = 120
#: names of all tests, for messages
_TESTS = join_first(typing.get_args(TestName), 8)
_EXAMPLES = {"image": "an image with nccl-tests", "cpu": "a number of CPUs (8)", "memory": "an amount of memory (64Gi)"}


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A setting below rdma_cluster.collectives that is contradictory or not usable, as the parts of a finding.

    :ivar key: key below rdma_cluster.collectives
    :ivar measured: value in the intent
    :ivar expected: allowed values
    :ivar why: why the value is wrong
    :ivar remedy: instruction to the user that resolves the cause
    """

    key: str
    measured: str
    expected: str
    why: str
    remedy: str


def find_mistakes(
    wanted: Collectives, fabrics: typing.Sequence[Fabric], nodes: typing.Collection[str] = ()
) -> tuple[Mistake, ...]:
    """Return the contradictory or unusable settings below ``rdma_cluster.collectives``. Settings that could not be read
    are skipped.

    :param wanted: settings of the collectives in the intent
    :param fabrics: fabrics of the intent
    :param nodes: names of the nodes of the inventory; empty if unknown
    """
    return (
        *run_rule(_check_fabric, wanted, fabrics),
        *run_rules((_check_run, _check_leaves, _check_floors), wanted),
        *run_rule(_check_nodes_of_leaves, wanted, nodes),
    )


def pick_fabric(wanted: Collectives, fabrics: typing.Sequence[Fabric]) -> typing.Optional[Fabric]:
    """Return the fabric over which collectives run. Return None if there is no such fabric, or if the intent selects
    none of several fabrics with RDMA.

    :param wanted: settings of the collectives in the intent
    """
    found = [fabric for fabric in fabrics if carries_rdma(fabric) and wanted.fabric in (None, fabric.name)]
    return found[0] if len(found) == 1 else None


def _check_fabric(wanted: Collectives, fabrics: typing.Sequence[Fabric]) -> typing.Iterator[Mistake]:
    names = [fabric.name for fabric in fabrics if carries_rdma(fabric)]
    fabric = pick_fabric(wanted, fabrics)
    if fabric is None:
        why = (
            "Stage collectives compares the bandwidth with the rails of one fabric, and a fabric without RDMA has no"
            " rails."
        )
        measured = wanted.fabric or f"{len(names)} fabrics with RDMA"
        yield Mistake(
            "fabric",
            measured,
            ", ".join(names) or "a fabric with RDMA",
            why,
            "Set rdma_cluster.collectives.fabric to one fabric with RDMA.",
        )
        return
    rails = fabric.select.hcas_per_node
    if not 1 <= wanted.gpus_per_node <= MOST_GPUS:
        yield Mistake(
            "gpus_per_node",
            str(wanted.gpus_per_node),
            f"1 to {MOST_GPUS}",
            "gpus_per_node is the number of ranks of a node.",
            "Set gpus_per_node to the number of GPUs of a node.",
        )
    elif wanted.gpus_per_node % rails:
        why = (
            f"The {rails} rails of a node would carry different numbers of GPUs. In the tests that run rail by rail,"
            " some groups would have no rail."
        )
        yield Mistake(
            "gpus_per_node",
            str(wanted.gpus_per_node),
            f"a multiple of {rails}",
            why,
            "Set gpus_per_node to a multiple of hcas_per_node.",
        )


def _check_run(wanted: Collectives) -> typing.Iterator[Mistake]:
    for key, value in (("image", wanted.image), ("cpu", wanted.cpu), ("memory", wanted.memory)):
        if not value.strip():
            why = "The pod of a node cannot start without this value."
            yield Mistake(key, "empty", _EXAMPLES[key], why, f"Set rdma_cluster.collectives.{key} to {_EXAMPLES[key]}.")
    if not wanted.tests:
        yield Mistake(
            "tests",
            "0 tests",
            "at least 1 test",
            "Without a test, the stage verifies nothing.",
            f"Set rdma_cluster.collectives.tests to [all_reduce], or to a list of the tests {_TESTS}.",
        )
    elif len(set(wanted.tests)) != len(wanted.tests):
        yield Mistake(
            "tests",
            ", ".join(wanted.tests),
            "each test once",
            "The second measurement of a test gives no additional information.",
            f"List each test only once in rdma_cluster.collectives.tests. The tests are {_TESTS}.",
        )
    if wanted.least_bytes < _LEAST_BYTES:
        why = "Each rank needs a part of a message. Messages below this size measure only the latency."
        remedy = "Remove least_bytes. Its default is 1073741824 (1 GiB)."
        yield Mistake("least_bytes", str(wanted.least_bytes), f"at least {_LEAST_BYTES}", why, remedy)
    elif wanted.most_bytes < wanted.least_bytes:
        why = "Messages below least_bytes do not fill the links, so their bandwidth cannot be compared with a floor."
        expected = f"at least {wanted.least_bytes} (least_bytes)"
        remedy = "Set most_bytes to 8589934592 (8 GiB), or to as much as GPU memory allows."
        yield Mistake("most_bytes", str(wanted.most_bytes), expected, why, remedy)
    if wanted.seconds < _LEAST_SECONDS:
        yield Mistake(
            "seconds",
            str(wanted.seconds),
            f"at least {_LEAST_SECONDS}",
            "Each test takes at least this time.",
            "Set seconds to 300.",
        )
    if not wanted.program_folder.startswith("/"):
        yield Mistake(
            "program_folder",
            wanted.program_folder,
            "an absolute path",
            "program_folder is the folder of the programs in the image.",
            "Set program_folder to the absolute path of the folder.",
        )


def _check_leaves(wanted: Collectives) -> typing.Iterator[Mistake]:
    leaf_of: dict[str, str] = {}
    for leaf, nodes in wanted.leaves.items():
        if not leaf.strip() or not nodes:
            why = "A leaf without a name or without nodes groups no nodes."
            yield Mistake(
                f"leaves[{leaf}]",
                ", ".join(nodes) or "no node",
                "a name and nodes",
                why,
                "Give the leaf a name and at least one node.",
            )
        for node in nodes:
            if node in leaf_of:
                why = "A node belongs to one leaf, or to one scalable unit with a leaf for each rail."
                expected = f"only in {leaf_of[node]}"
                yield Mistake(f"leaves[{leaf}]", node, expected, why, "List each node once.")
            leaf_of.setdefault(node, leaf)


def _check_nodes_of_leaves(wanted: Collectives, known: typing.Collection[str]) -> typing.Iterator[Mistake]:
    names = frozenset(known)
    for leaf, nodes in wanted.leaves.items() if names else ():
        strange = [node for node in nodes if node not in names]
        if strange:
            why = "The inventory has no nodes of these names. The leaf would have fewer nodes, without a warning."
            expected = f"nodes of the inventory group rdma_nodes{suggest_nearest(strange[0], known)}"
            remedy = "Use the node names of the inventory."
            yield Mistake(f"leaves[{leaf}]", join_first(strange, 8), expected, why, remedy)


def _check_share_reason(wanted: Collectives) -> typing.Iterator[Mistake]:
    test = max(wanted.tests, key=pick_least_share, default="all_reduce")
    usual = pick_least_share(test)
    if wanted.share is not None and wanted.share < usual and len((wanted.share_reason or "").split()) < 2:
        why = f"Published runs of {test} reach {usual:g} of what the rails allow. A lower floor hides a slow cluster."
        remedy = "Say in some words why this cluster reaches less: share_reason. Or leave share out."
        expected = f"a reason beside share below {usual:g}"
        yield Mistake("share_reason", wanted.share_reason or "none", expected, why, remedy)


def _check_floors(wanted: Collectives) -> typing.Iterator[Mistake]:
    # not a number compares with nothing
    if wanted.share is not None and not _LEAST_SHARE <= wanted.share <= 1:
        why = (
            "With a share above 1, no run can pass. With a share below half of the rate of the links, a faulty cluster"
            " can pass."
        )
        yield Mistake(
            "share",
            f"{wanted.share:g}",
            f"{_LEAST_SHARE:g} to 1",
            why,
            "Remove share, or set a floor with its reason in expected_busbw.",
        )
    else:
        yield from _check_share_reason(wanted)
    if wanted.most_latency_us is not None and not (wanted.latency and 0 < wanted.most_latency_us < 1e6):
        why = "No pair can be compared with this value."
        expected = "above 0 us, with latency: true"
        yield Mistake(
            "most_latency_us",
            f"{wanted.most_latency_us:g}",
            expected,
            why,
            "Set latency to true and most_latency_us above 0, or remove most_latency_us.",
        )
    if not 0 <= wanted.soak_minutes <= _MOST_SOAK:
        why = "During the soak, its pods hold all GPUs of their nodes."
        remedy = "Set soak_minutes to 30, or remove it."
        yield Mistake("soak_minutes", str(wanted.soak_minutes), f"0 to {_MOST_SOAK}", why, remedy)
    if not 1 < wanted.latency_ratio <= _MOST_RATIO:
        why = (
            "With a ratio of 1, the check would report every second pair. With a ratio above the limit, the check would"
            " report only pairs that are broken."
        )
        expected = f"more than 1, at most {_MOST_RATIO}"
        yield Mistake(
            "latency_ratio", f"{wanted.latency_ratio:g}", expected, why, "Remove latency_ratio. Its default is 1.5."
        )
    elif (far := explain_far_ratio(wanted.latency_ratio, wanted.most_latency_us)) is not None:
        yield Mistake(
            "latency_ratio",
            *far,
            "Set most_latency_us, the longest time that you accept. Or remove latency_ratio. Its default is 1.5.",
        )
    if wanted.latency and "all_reduce" not in wanted.tests:
        why = "The latency test is an all_reduce of small messages."
        yield Mistake("latency", "true", "all_reduce in tests", why, "Add all_reduce to tests, or remove latency.")
    seen = set()
    for place, item in enumerate(wanted.expected_busbw):
        key = f"expected_busbw[{place}]"
        if not 0 < item.gbs < 1e5:
            yield Mistake(
                f"{key}.gbs",
                f"{item.gbs:g}",
                "above 0 GB/s",
                "gbs is the bus bandwidth that nccl-tests prints.",
                "Set gbs to the bandwidth in GB/s.",
            )
        if len(item.reason.split()) < 2:
            why = "The report shows the reason to the users who rely on the result."
            yield Mistake(
                f"{key}.reason",
                item.reason or "none",
                "a reason of at least two words",
                why,
                "Give the reason for this floor.",
            )
        if item.nodes is not None and item.nodes < 2:
            yield Mistake(
                f"{key}.nodes",
                str(item.nodes),
                "at least 2",
                "One node sends nothing over the network.",
                "Remove nodes, or set it to at least 2.",
            )
        if item.test not in wanted.tests:
            yield Mistake(
                f"{key}.test",
                item.test,
                ", ".join(wanted.tests),
                "The intent does not run this test.",
                f"Add '{item.test}' to rdma_cluster.collectives.tests, or remove rdma_cluster.collectives.{key}.",
            )
        if (item.test, item.nodes) in seen:
            yield Mistake(
                key,
                f"{item.test} of {item.nodes or 'all'} nodes",
                "each test and number of nodes once",
                "Two entries set a floor for the same groups.",
                "Remove one of the entries.",
            )
        seen.add((item.test, item.nodes))
