# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage compare, for the pages that the report links to. Check ids: ``compare.*``."""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "compare.advice": Explanation(
        means=(
            "A rule of thumb about networks for training speaks against a fabric of the intent. The rule, its figures"
            " and its reason are in the finding."
        ),
        measured="Figures of `rdma_cluster.measures` and of stage `bandwidth`, and the rules that they trigger.",
        causes=(
            "The pod network is offered to jobs of several nodes.",
            "Negative scaling on the network.",
        ),
        look=("ansible-doc -t role linerate.rdma.compare",),
        remedy="Take the network that the advice names, or leave it: it only warns.",
    ),
    "compare.choice": Explanation(
        means=(
            "The fastest network of a measure is not one of the intent, or the pod network beats a network with a NIC"
            " of its own."
        ),
        measured="Figures of one measure at the same number of nodes, ranked.",
        causes=(
            "The job did not use the network that it was given: NCCL fell back to TCP.",
            "The network is broken: see stages `fabric` and `bandwidth`.",
            "A network outside of the intent was measured as well (warn).",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy=(
            "See which interface and transport the job really used (NCCL_DEBUG=INFO, stage `training`), then the stages"
            " fabric and bandwidth."
        ),
    ),
    "compare.figures": Explanation(
        means="A fabric has no figure to compare with. Nothing is known of what a job does on it.",
        measured="The figures of the stages `bandwidth` and `collectives`, and `rdma_cluster.measures`.",
        causes=(
            "Stage bandwidth did not run, or measured nothing on the fabric.",
            "The job was not run on this network.",
            "The measure is a collective, and stage `collectives` has proven no group of several nodes with all rails.",
        ),
        look=("ansible-playbook linerate.rdma.site --tags bandwidth,compare",),
        remedy="Run stage bandwidth, or run the job on this fabric and add its figure to `rdma_cluster.measures`.",
    ),
    "compare.scaling": Explanation(
        means=(
            "Adding nodes makes the job slower on this network, or gains less than `enough` of linear. The nodes wait"
            " for each other."
        ),
        measured="Speed-up of each figure against `single_node` and against fewer nodes.",
        causes=(
            "The network is too slow for what the model exchanges, or the job does not use RDMA.",
            "One slow node or rail: see `bandwidth.fleet`.",
            "`single_node` is missing, so nothing can be said (unknown).",
        ),
        look=("kubectl logs POD -n NAMESPACE",),
        remedy=(
            "Do not run this job over several nodes on it; take the network that `compare.choice` names. Where RDMA was"
            " meant, prove it by stage `training`."
        ),
    ),
}
