# SPDX-License-Identifier: GPL-3.0-or-later

"""The job templates in AWX with their surveys, and the order in which the workflow runs them."""

from __future__ import annotations

import typing

from ..._model.intent.awx import APPROVAL, SurveyQuestion, Template
from ..._model.intent.disruption_override import DISRUPTION, OF_JOB, WORDS

_DISRUPTION = SurveyQuestion(
    DISRUPTION,
    "Greatest permitted disruption of a node",
    "Must equal rdma_cluster.disruption of the intent, which must refer to this variable. Without an answer, the value"
    " of the intent applies.",
    WORDS,
)
_MAKES = (_DISRUPTION,)

#: what the stages do, a line each, in their order
STAGES: tuple[Template, ...] = (
    Template(
        "stage validate",
        "validate",
        "Checks the intent and the tools on the controller. Contacts no node",
    ),
    Template("stage discover", "discover", "Reads HCAs, ports, virtual functions and the platform of each node"),
    Template("stage fabric", "fabric", "Reads subnet managers, topology, links and error counters"),
    Template("stage reachability", "reachability", "Tests every port with ping in both directions"),
    Template(
        "stage platform",
        "platform",
        "Checks IOMMU, SR-IOV, BIOS and firmware, and names the layer that blocks virtual functions",
        survey=_MAKES,
    ),
    Template(
        "stage tuning", "tuning", "Checks the settings of the hosts, and names nodes that differ from comparable nodes"
    ),
    Template(
        "stage operators",
        "operators",
        "Checks the operators that the profiles require. Installs them if the intent requests it",
        survey=_MAKES,
    ),
    Template(
        "stage network",
        "network",
        "Plans and applies the objects of each profile, and waits for them. May drain or reboot nodes",
        survey=_MAKES,
    ),
    Template(
        "stage virtual_functions",
        "virtual_functions",
        "Compares the virtual functions that the node, the operator and the kubelet report",
    ),
    Template("stage host", "host", "Verifies that jobs can lock and register memory", survey=_MAKES),
    Template("stage bandwidth", "bandwidth", "Measures RDMA bandwidth between pods against a floor. Loads the links"),
    Template(
        "stage collectives",
        "collectives",
        "Runs NCCL collectives on the GPUs of all nodes, if the intent requests them. Loads the links",
    ),
    Template("stage compare", "compare", "Compares measured figures of the networks that a training job could use"),
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
        "Reads nodes and fabrics, and stops at the first closed gate. Changes nothing",
        check=True,
        tags=_LOOKS,
    ),
    Template(
        "plan",
        "site",
        "Shows the planned changes, and the nodes that would drain or reboot. Changes nothing",
        check=True,
        survey=_MAKES,
        tells=True,
    ),
    Template(
        "apply",
        "site",
        "Applies the planned changes and waits for them. May drain or reboot nodes",
        tags=_MADE,
        survey=_MAKES,
    ),
    Template(
        "prove",
        "site",
        "Runs all stages and writes the report. Disrupts no node",
        variables={OF_JOB: "none"},
        tells=True,
    ),
    Template(
        "propose",
        "propose",
        "Reads nodes and cluster, and shows an intent for them. Writes nothing",
        check=True,
        survey=(
            SurveyQuestion(
                "rdma_proposal_namespace",
                "Namespace of the jobs",
                "Without an answer, the intent contains a line to fill in.",
            ),
        ),
    ),
    Template(
        "judge",
        "judge",
        "Judges the facts in the folder of a run again. Contacts neither nodes nor cluster",
        survey=(
            SurveyQuestion(
                "rdma_report_dir",
                "Folder of the run",
                "A path that the job can read, for example on a volume.",
                required=True,
            ),
        ),
        tells=True,
    ),
    Template(
        "teardown",
        "teardown",
        "Removes all objects of the collection, and verifies the removal. May drain or reboot nodes",
        survey=(
            SurveyQuestion(
                "teardown_operator",
                "Also remove the operators",
                "Only the operators that a run installed.",
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
    "Writes the plan into the text of the approval",
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
    """Return all job templates that AWX gets for the collection.

    :param describes: whether to include the job that writes the text of the plan into the approval. This job needs a
        credential of AWX
    """
    return (*STAGES, *OTHERS, *((DESCRIBE,) if describes else ()))


def list_sequence(describes: bool) -> tuple[tuple[str, str], ...]:
    """Return the job sequence of the workflow as pairs: identifier of the workflow node, and key of its job template.
    Each node runs if the previous one succeeded.

    :param describes: whether to include the job that writes the plan into the approval
    """
    return tuple(node for node in _WAY if describes or node[1] != DESCRIBE.key)


def render_survey(questions: typing.Sequence[SurveyQuestion]) -> dict[str, typing.Any]:
    """Return a survey in the form that AWX expects, a mapping with the questions in the list ``spec``. Return an empty
    mapping if there are no questions.
    """
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
