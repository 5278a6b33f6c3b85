# SPDX-License-Identifier: GPL-3.0-or-later

"""The job templates in AWX with their surveys, and the order in which the workflow runs them."""

from __future__ import annotations

import typing

from ..._model.intent.awx import APPROVAL, SurveyQuestion, Template
from ..._model.intent.disruption_override import DISRUPTION, WORDS

_DISRUPTION = SurveyQuestion(
    DISRUPTION,
    "The most that may happen to a node",
    "Must be what rdma_cluster.disruption of the intent comes to, which refers to this variable. Unanswered: what the"
    " intent says.",
    WORDS,
)
_MAKES = (_DISRUPTION,)

#: what the stages do, a line each, in their order
STAGES: tuple[Template, ...] = (
    Template(
        "stage validate",
        "validate",
        "Checks the intent, and what the controller has for the other stages. Touches no node",
    ),
    Template("stage discover", "discover", "Looks at HCAs, ports, virtual functions and the platform of each node"),
    Template("stage fabric", "fabric", "Looks at subnet managers, topology, links and their errors"),
    Template("stage reachability", "reachability", "Pings from and to every port"),
    Template(
        "stage platform",
        "platform",
        "Looks at IOMMU, SR-IOV, BIOS and firmware, and names the layer that says no",
        survey=_MAKES,
    ),
    Template("stage tuning", "tuning", "Looks at the host under the network, and for nodes that are not as their like"),
    Template(
        "stage operators",
        "operators",
        "Looks at what serves the kinds of the profiles. Installs it where the intent asks for that",
        survey=_MAKES,
    ),
    Template(
        "stage network",
        "network",
        "Plans, applies and waits for the objects of each profile. May drain or reboot nodes",
        survey=_MAKES,
    ),
    Template(
        "stage virtual_functions",
        "virtual_functions",
        "Compares what node, operator and kubelet say of the virtual functions",
    ),
    Template(
        "stage host", "host", "Proves what jobs need beside the network: locked and registered memory", survey=_MAKES
    ),
    Template("stage bandwidth", "bandwidth", "Measures RDMA between pods against a floor. Fills the links"),
    Template(
        "stage collectives",
        "collectives",
        "Runs collectives of NCCL on the GPUs of all nodes, if the intent asks for them. Fills the links",
    ),
    Template("stage compare", "compare", "Compares the networks that a training job could get, by figures"),
    Template("stage training", "training", "Reads the transport of every channel of a training job from its log"),
)

_LOOKS = ("validate", "discover", "fabric", "reachability", "platform", "tuning")
_MADE = ("validate", "discover", "fabric", "platform", "tuning", "operators", "network", "virtual_functions")

#: what is not a stage
OTHERS: tuple[Template, ...] = (
    Template(
        "site",
        "site",
        "Runs all stages and writes the report, in one job",
        survey=_MAKES,
        any_variable=True,
        tells=True,
    ),
    Template(
        "look",
        "site",
        "Looks at nodes and fabrics, and stops at the first closed gate. Changes nothing",
        check=True,
        tags=_LOOKS,
    ),
    Template(
        "plan",
        "site",
        "Says what would be made, and which nodes would drain or reboot. Changes nothing",
        check=True,
        survey=_MAKES,
        tells=True,
    ),
    Template(
        "apply",
        "site",
        "Makes what the plan says, and waits for it. May drain or reboot nodes",
        tags=_MADE,
        survey=_MAKES,
    ),
    Template(
        "prove",
        "site",
        "Runs all stages and writes the report. No node may be disrupted",
        variables={DISRUPTION: "none"},
        tells=True,
    ),
    Template(
        "propose",
        "propose",
        "Looks at nodes and cluster, and shows the intent that fits them. Writes nothing",
        check=True,
        survey=(SurveyQuestion("rdma_proposal_namespace", "Namespace of the jobs", "Unanswered: a line to fill in."),),
    ),
    Template(
        "judge",
        "judge",
        "Judges the folder of a run again, by its facts alone. Asks neither nodes nor cluster",
        survey=(
            SurveyQuestion(
                "rdma_report_dir",
                "Folder of the run",
                "A path that the job can see, such as one on a volume.",
                required=True,
            ),
        ),
        tells=True,
    ),
    Template(
        "teardown",
        "teardown",
        "Takes back what the collection made, and proves it. May drain or reboot nodes",
        survey=(
            SurveyQuestion(
                "teardown_operator",
                "Remove the operators as well",
                "Those that a run installed.",
                ("false", "true"),
                "false",
            ),
        ),
        tells=True,
    ),
)

#: puts the plan's text into the approval that follows
DESCRIBE = Template(
    "describe the plan",
    "awx_approval",
    "Puts the text of the plan into the approval that waits for a human",
    controller=True,
)

#: nodes of the workflow: identifier, and the job template; the approval has none
_WAY = (
    ("look", "look"),
    ("plan", "plan"),
    ("describe", DESCRIBE.key),
    (APPROVAL, ""),
    ("apply", "apply"),
    ("prove", "prove"),
)


def render_templates(describes: bool) -> tuple[Template, ...]:
    """Return all job templates.

    :param describes: whether to include the job that writes the plan into the approval. This job needs a credential of
        AWX
    """
    return (*STAGES, *OTHERS, *((DESCRIBE,) if describes else ()))


def way(describes: bool) -> tuple[tuple[str, str], ...]:
    """Return the job sequence of the workflow as pairs: identifier of the workflow node, and key of its job template.
    Each node runs if the previous one succeeded.

    :param describes: as in :func:`render_templates`
    """
    return tuple(node for node in _WAY if describes or node[1] != DESCRIBE.key)


def render_survey(questions: typing.Sequence[SurveyQuestion]) -> dict[str, typing.Any]:
    """Return a survey in the format of AWX; empty if there are no questions."""
    return (
        {"name": "", "description": "", "spec": [_render_question(question) for question in questions]}
        if questions
        else {}
    )


def _render_question(question: SurveyQuestion) -> dict[str, typing.Any]:
    asked: dict[str, typing.Any] = {
        "question_name": question.text,
        "question_description": question.help,
        "required": question.required or bool(question.default),
        "variable": question.variable,
        "type": "multiplechoice" if question.choices else "text",
    }
    # an empty default would set the variable to an empty text
    if question.default:
        asked["default"] = question.default
    return {**asked, "choices": list(question.choices)} if question.choices else {**asked, "min": 0, "max": 1024}
