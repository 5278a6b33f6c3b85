# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage compare, for the pages that the report links to. Check ids: ``compare.*``."""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "compare.advice": Explanation(
        means=(
            "A recommendation about networks for training advises against a fabric of the intent. The finding contains"
            " the rule, its figures and its reason."
        ),
        measured=(
            "The figures of `rdma_cluster.measures` and of the stages `bandwidth` and `collectives`, and the rules"
            " that apply to these figures."
        ),
        causes=(
            "The intent offers the pod network to jobs on several nodes.",
            "The network has negative scaling: the job is faster on fewer nodes.",
        ),
        look=("ansible-doc -t role linerate.rdma.compare",),
        remedy="Use the network that the finding recommends. The finding is only a warning, so you can also ignore it.",
    ),
    "compare.choice": Explanation(
        means=(
            "The fastest network of a measure is not a fabric of the intent, or the pod network is faster than a"
            " network with a NIC of its own."
        ),
        measured="The figures of one measure on the same number of nodes, in the order of their speed.",
        causes=(
            "The job did not use its assigned network: NCCL fell back to TCP.",
            "The network has a fault: see the findings of stages `fabric` and `bandwidth`.",
            "The difference is within the noise of the measurements (warn): up to 50 % over TCP or where the ranges of"
            " the figures overlap, otherwise up to 10 % for a job and 5 % for RDMA.",
            "A network that is not in the intent was measured as well (warn).",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy=(
            "Look in the NCCL log (NCCL_DEBUG=INFO, stage `training`) for the interface and the transport that the job"
            " used. Then see the findings of stages `fabric` and `bandwidth`."
        ),
    ),
    "compare.figures": Explanation(
        means="A fabric has no figure to compare, so the performance of a job on it is unknown.",
        measured="The figures of the stages `bandwidth` and `collectives`, and `rdma_cluster.measures`.",
        causes=(
            "Stage `bandwidth` did not run, or it measured no bandwidth on the fabric.",
            "The job was not run on this network.",
            (
                "The measure is a collective, and stage `collectives` has not verified a group of several nodes with"
                " all rails."
            ),
        ),
        look=("ansible-playbook linerate.rdma.site --tags bandwidth,compare",),
        remedy=(
            "Run stage `bandwidth`, or run the job on this fabric and add its figure to `rdma_cluster.measures`. Then"
            " run stage `compare` again."
        ),
    ),
    "compare.scaling": Explanation(
        means=(
            "More nodes make the job slower on this network, or the job reaches less than `enough` of linear scaling."
            " The nodes wait for each other."
        ),
        measured="The speed of each figure compared with `single_node` and with the figures for fewer nodes.",
        causes=(
            "The network is too slow for the data that the model exchanges, or the job does not use RDMA.",
            "One node or one rail is slow: see the finding `bandwidth.fleet`.",
            "`single_node` is missing, so the scaling is unknown (unknown).",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy=(
            "Do not run this job on several nodes over this network. Use the network that the finding `compare.choice`"
            " recommends. If the job is meant to use RDMA, verify this with stage `training`."
        ),
    ),
}
