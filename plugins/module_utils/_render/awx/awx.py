# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the objects that the collection creates in AWX, and their removal, as arguments of the modules of awx.awx in
the order of the calls.

Some texts contain placeholders in braces that AWX itself fills in. Ansible must not evaluate them as templates.
"""

from __future__ import annotations

import typing

from ..._model.base.version import COLLECTION_VERSION
from ..._model.intent.awx import APPROVAL, BMC_ENVIRONMENT, AwxObject, AwxWanted, Data, SurveyQuestion, Template
from ..._model.run.archive import ENVIRONMENT, LOGIN_ENVIRONMENT
from .awx_templates import list_sequence, render_survey, render_templates

#: prose of the approval as long as no plan is in it
_APPROVE = "Read the output of the previous job: the planned changes, and the nodes that the run would drain or reboot."

_TOLD = "(job.artifacts.linerate_rdma | default({}))"
_MESSAGE = "{{ job.name }}: {{ " + _TOLD + ".summary | default(job.status) }} {{ url }}"
_BODY = "{{ " + _TOLD + " | tojson }}"
_WAITS = "{{ {'approval': approval_node_name, 'plan': job.description} | tojson }}"
_ANSWERED = "{{ {'approval': approval_status} | tojson }}"


def render_objects(wanted: AwxWanted) -> list[AwxObject]:
    """Render the objects of AWX in such an order that each one follows all objects that it refers to.

    :param wanted: desired configuration in AWX
    """
    return [
        *_render_projects(wanted),
        _render_environment(wanted),
        _bmc_type(wanted),
        _archive_type(wanted),
        *_render_notifications(wanted),
        *_render_inventory(wanted),
        *(_job_template(wanted, template) for template in render_templates(_has_controller_credential(wanted))),
        _render_workflow(wanted),
        *_render_workflow_nodes(wanted),
        *_render_schedule(wanted),
    ]


def render_removals(wanted: AwxWanted) -> list[AwxObject]:
    """Render the removal of all objects, in the opposite order of their creation. AWX itself removes workflow nodes
    with their workflow, and schedules and inventory sources with their owners.

    A removal contains only the name and the organization of an object, so it also removes objects that were created
    from an older intent.

    :param wanted: desired configuration in AWX
    """
    name, organization = wanted.name, {"organization": wanted.organization}
    made: tuple[tuple[str, tuple[str, ...], Data], ...] = (
        ("workflow_job_template", (_workflow_name(name),), organization),
        ("job_template", tuple(_template_name(name, template) for template in render_templates(True)), organization),
        ("inventory", (name,), organization),
        ("notification_template", (_notification_name(name),), organization),
        ("execution_environment", (name,), {}),
        ("project", (_site_name(name), _playbooks_name(name)), {**organization, "wait": False}),
        ("credential_type", (_bmc_name(name), _archive_name(name)), {}),
    )
    return [
        AwxObject(kind, each, {"name": each, "state": "absent", **more}) for kind, names, more in made for each in names
    ]


def render_approval(wanted: AwxWanted, text: str) -> AwxObject:
    """Render the approval node of the workflow with the text of a plan as its description, which the approver of the
    run reads.

    :param text: text of the plan
    """
    return _approval_node(wanted, {"description": text})


def _render_projects(wanted: AwxWanted) -> typing.Iterator[AwxObject]:
    common = {"organization": wanted.organization, "scm_type": "git", "scm_update_on_launch": True, "wait": wanted.wait}
    yield _build_awx_object(
        "project",
        _playbooks_name(wanted.name),
        "The playbooks of linerate.rdma",
        scm_url=wanted.playbooks_url,
        scm_branch=wanted.playbooks_branch or COLLECTION_VERSION,
        **common,
    )
    yield _build_awx_object(
        "project",
        _site_name(wanted.name),
        "The nodes and the intent of this site",
        scm_url=wanted.site_url,
        scm_branch=wanted.site_branch,
        **_drop_empty_arguments(credential=wanted.scm_credential),
        **common,
    )


def _render_environment(wanted: AwxWanted) -> AwxObject:
    more = _drop_empty_arguments(credential=wanted.image_credential)
    return _build_awx_object(
        "execution_environment",
        wanted.name,
        "Ansible with linerate.rdma and its requirements",
        image=wanted.image,
        organization=wanted.organization,
        **more,
    )


def _bmc_type(wanted: AwxWanted) -> AwxObject:
    about = "User of the BMCs that have no user of their own in the inventory"
    fields = _render_login_fields("Session token, instead of user and password")
    return _credential_type(_bmc_name(wanted.name), about, fields, BMC_ENVIRONMENT)


def _archive_type(wanted: AwxWanted) -> AwxObject:
    about = "URL that stores the archive of the report after the job, and the user for it"
    # it may be signed, and is as good as a password then
    address = {"id": "address", "label": "URL that accepts PUT", "type": "string", "secret": True}
    environment = {"address": ENVIRONMENT, **LOGIN_ENVIRONMENT}
    return _credential_type(
        _archive_name(wanted.name),
        about,
        [address, *_render_login_fields("Bearer token, instead of user and password")],
        environment,
    )


def _render_login_fields(token: str) -> list[Data]:
    return [
        {"id": "user", "label": "User", "type": "string"},
        {"id": "password", "label": "Password", "type": "string", "secret": True},
        {"id": "token", "label": token, "type": "string", "secret": True},
    ]


def _credential_type(name: str, about: str, fields: list[Data], environment: typing.Mapping[str, str]) -> AwxObject:
    injectors = {"env": {variable: "{{ " + field + " | default('') }}" for field, variable in environment.items()}}
    return _build_awx_object(
        "credential_type", name, about, kind="cloud", inputs={"fields": fields}, injectors=injectors
    )


def _render_notifications(wanted: AwxWanted) -> typing.Iterator[AwxObject]:
    if not wanted.notification_type:
        return
    ended = {"message": _MESSAGE, "body": _BODY}
    waits = {
        "message": "{{ approval_node_name }} waits for you: {{ workflow_url }}",
        "body": _WAITS,
    }
    answered = {
        state: {
            "message": "{{ approval_node_name }}: " + state.replace("_", " ") + " {{ workflow_url }}",
            "body": _ANSWERED,
        }
        for state in ("approved", "denied", "timed_out")
    }
    yield _build_awx_object(
        "notification_template",
        _notification_name(wanted.name),
        "Verdict of a run, or a plan that waits for approval",
        organization=wanted.organization,
        notification_type=wanted.notification_type,
        notification_configuration=dict(wanted.notification_configuration),
        messages={"success": ended, "error": ended, "workflow_approval": {"running": waits, **answered}},
    )


def _render_inventory(wanted: AwxWanted) -> typing.Iterator[AwxObject]:
    yield _build_awx_object(
        "inventory", wanted.name, "The nodes of the cluster, with the intent", organization=wanted.organization
    )
    yield _build_awx_object(
        "inventory_source",
        wanted.name,
        "Reads the nodes from the cluster with linerate.rdma.nodes",
        organization=wanted.organization,
        inventory=wanted.name,
        source="scm",
        source_project=_site_name(wanted.name),
        source_path=wanted.inventory_file,
        credential=wanted.cluster_credential,
        execution_environment=wanted.name,
        overwrite=True,
        overwrite_vars=True,
        update_on_launch=True,
    )


def _job_template(wanted: AwxWanted, template: Template) -> AwxObject:
    own = (wanted.controller_credential,) if template.controller else (wanted.cluster_credential, *wanted.credentials)
    variables = {
        **wanted.extra_vars,
        **template.variables,
        **(_build_approval_variables(wanted) if template.controller else {}),
    }
    asked = render_survey(template.survey)
    told = [_notification_name(wanted.name)] if template.tells and wanted.notification_type else []
    return _build_awx_object(
        "job_template",
        _template_name(wanted.name, template),
        template.description,
        organization=wanted.organization,
        project=_playbooks_name(wanted.name),
        playbook=f"playbooks/{template.playbook}.yml",
        inventory=wanted.name,
        execution_environment=wanted.name,
        credentials=list(own),
        job_type="check" if template.check else "run",
        diff_mode=template.check,
        job_tags=",".join(template.tags),
        extra_vars=variables,
        ask_variables_on_launch=template.any_variable,
        survey_enabled=bool(asked),
        survey_spec=asked,
        notification_templates_success=told,
        notification_templates_error=told,
        forks=wanted.forks,
        instance_groups=list(wanted.instance_groups),
    )


def _render_workflow(wanted: AwxWanted) -> AwxObject:
    told = [_notification_name(wanted.name)] if wanted.notification_type else []
    return _build_awx_object(
        "workflow_job_template",
        _workflow_name(wanted.name),
        "Read, plan, wait for approval of the plan, apply it, verify the result",
        organization=wanted.organization,
        # the plan of one would be in the approval of the other
        allow_simultaneous=False,
        survey_enabled=True,
        survey_spec=render_survey(_list_survey_questions()),
        notification_templates_approvals=told,
    )


def _render_workflow_nodes(wanted: AwxWanted) -> typing.Iterator[AwxObject]:
    """Render the nodes of the workflow, from last to first, because each node refers to the next one."""
    after: list[str] = []
    for identifier, key in reversed(list_sequence(_has_controller_credential(wanted))):
        more: Data = {"success_nodes": list(after)}
        if identifier == APPROVAL:
            # with a job that describes the plan, the text is that job's. The module makes an approval or links it, and
            # fails at both in one call
            yield _approval_node(wanted, {} if _has_controller_credential(wanted) else {"description": _APPROVE})
        else:
            more.update(unified_job_template=f"{wanted.name}: {key}", lookup_organization=wanted.organization)
        yield AwxObject("workflow_job_template_node", identifier, {**_render_node_identity(wanted, identifier), **more})
        after = [identifier]


def _render_node_identity(wanted: AwxWanted, identifier: str) -> Data:
    return {
        "identifier": identifier,
        "workflow_job_template": _workflow_name(wanted.name),
        "organization": wanted.organization,
    }


def _approval_node(wanted: AwxWanted, text: Data) -> AwxObject:
    node = {"name": f"{wanted.name}: approve the plan", "timeout": wanted.approval_seconds, **text}
    return AwxObject(
        "workflow_job_template_node", APPROVAL, {**_render_node_identity(wanted, APPROVAL), "approval_node": node}
    )


def _render_schedule(wanted: AwxWanted) -> typing.Iterator[AwxObject]:
    if wanted.schedule:
        yield _build_awx_object(
            "schedule",
            f"{wanted.name}: day 2",
            "Reads and verifies all again; no node is disrupted",
            organization=wanted.organization,
            unified_job_template=f"{wanted.name}: prove",
            rrule=wanted.schedule,
            enabled=True,
        )


def _list_survey_questions() -> tuple[SurveyQuestion, ...]:
    """Return the survey questions of the workflow, which are those of the job template ``apply``. AWX passes each
    answer to all jobs of the workflow whose template has the same question.
    """
    return next(template.survey for template in render_templates(False) if template.key == "apply")


def _build_approval_variables(wanted: AwxWanted) -> Data:
    """Return the variables by which the job that describes the plan finds the approval node of the workflow: name,
    organization and timeout.

    :param wanted: desired configuration in AWX
    """
    return {
        "awx_name": wanted.name,
        "awx_organization": wanted.organization,
        "awx_approval_seconds": wanted.approval_seconds,
    }


def _has_controller_credential(wanted: AwxWanted) -> bool:
    return bool(wanted.controller_credential)


def _build_awx_object(module: str, name: str, description: str, /, **arguments: typing.Any) -> AwxObject:
    return AwxObject(module, name, {"name": name, "description": description, **arguments, "state": "present"})


def _drop_empty_arguments(**arguments: str) -> dict[str, str]:
    return {name: value for name, value in arguments.items() if value}


def _playbooks_name(name: str) -> str:
    return f"{name}: playbooks"


def _site_name(name: str) -> str:
    return f"{name}: site"


def _bmc_name(name: str) -> str:
    return f"{name}: BMC"


def _archive_name(name: str) -> str:
    return f"{name}: report archive"


def _notification_name(name: str) -> str:
    return f"{name}: verdict"


def _template_name(name: str, template: Template) -> str:
    return f"{name}: {template.key}"


def _workflow_name(name: str) -> str:
    return f"{name}: from plan to proof"
