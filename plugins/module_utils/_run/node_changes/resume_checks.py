# SPDX-License-Identifier: GPL-3.0-or-later

"""Resumes the health checks that an interrupted roll of an intent left paused, for the teardown of this intent. No run
of the intent comes afterwards, so a node that is away would be remediated at once: its health checks stay paused.
"""

from __future__ import annotations

from ..._model.base.text import join_first
from ..._model.kubernetes.control_plane import HealthCheck
from ..._model.kubernetes.scope import Scope
from ..._model.operators.olm import RetainedObject
from ..._parse.kubernetes.core import parse_node
from ..._parse.kubernetes.health_check import PAUSE_REQUEST, PAUSED
from ..._parse.kubernetes.roll_mark import is_in_roll
from .health_checks import HealthChecks
from .machine_configs.paused_pools import explain_other_pause

#: nodes that a message names
_NAMED = 5
_BY_OTHERS = (
    "Run stage platform with the other intent and -e platform_settle=true again: it resumes the health check when its"
    " nodes are back. If no run will, wait until its nodes are Ready, then resume it: {command}"
)
_BY_NODES = "Make these nodes Ready, then run the teardown again, or resume the health check: {command}"


def resume_own_checks(
    checks: HealthChecks, scope: Scope, check_mode: bool
) -> tuple[list[HealthCheck], list[RetainedObject]]:
    """Resume the health checks that runs of an intent have paused. A check stays paused if a run of another intent
    paused it, or while a node that it watches is not Ready or has the mark of a roll. Return two values: the resumed
    health checks, and the entries for those that stay paused, each with the remedy.

    :param checks: client of the health checks
    :param scope: objects of the intent
    :param check_mode: whether nothing is changed. The health checks that would be resumed are returned
    :raises ApiError: the API server cannot be reached, or refuses a change
    """
    paused, resources = checks.list_paused()
    nodes = [(item, parse_node(item)) for item in resources]
    mine: list[HealthCheck] = []
    stays: list[RetainedObject] = []
    for check in paused:
        watched = [(item, node) for item, node in nodes if check.watches(node.name)]
        other = explain_other_pause(check.intent, tuple(node for _item, node in watched), scope)
        away = [node.name for item, node in watched if not node.ready or is_in_roll(item)]
        if other:
            stays.append(_retain(check, other, _BY_OTHERS))
        elif away:
            names = join_first(away, _NAMED)
            why = f"it watches nodes that are not Ready, or that a roll has not released: {names}"
            stays.append(_retain(check, why, _BY_NODES))
        else:
            mine.append(check)
    return mine if check_mode else checks.release(mine, ()), stays


def _retain(check: HealthCheck, why: str, remedy: str) -> RetainedObject:
    """Return the entry for a health check that stays paused.

    :param why: reason why it stays paused
    :param remedy: text with the placeholder ``{command}`` for the command that resumes the health check
    """
    command = (
        f"kubectl edit nodehealthcheck {check.name}, and remove the entry of spec.pauseRequests that begins with"
        f" '{PAUSE_REQUEST}'"
        if check.kind == "NodeHealthCheck"
        else f"kubectl annotate {check.kind.lower()} -n {check.namespace} {check.name} {PAUSED}-"
    )
    return RetainedObject(str(check), f"it is paused, and it stays paused: {why}", remedy.format(command=command))
