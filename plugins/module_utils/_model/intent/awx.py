# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects that AWX needs for the collection, independent of their representation in AWX."""

from __future__ import annotations

import dataclasses
import typing

Data = dict[str, typing.Any]

#: a workflow's node that a human answers; the plan's text goes into its description
APPROVAL = "approval"
#: environment variables that a credential for BMCs sets
BMC_ENVIRONMENT = {name: f"RDMA_BMC_{name.upper()}" for name in ("user", "password", "token")}


@dataclasses.dataclass(frozen=True)
class AwxWanted:
    """The desired AWX configuration, as set by an administrator.

    :ivar name: prefix of the names of all objects
    :ivar site_branch: branch, tag or commit of the repository ``site_url``
    :ivar organization: name of the existing organization to which the objects belong
    :ivar site_url: repository with the inventory file and the intent
    :ivar inventory_file: path of the inventory file in that repository
    :ivar scm_credential: name of the credential for that repository; empty for none
    :ivar playbooks_url: repository with this collection's playbooks
    :ivar playbooks_branch: branch, tag or commit of that repository
    :ivar image: image of the execution environment
    :ivar image_credential: name of the credential for the image registry; empty for none
    :ivar cluster_credential: name of the credential for the API server of the cluster
    :ivar credentials: names of further credentials of each job
    :ivar controller_credential: name of a credential for AWX itself; empty if the text of the plan is not put into the
        approval
    :ivar approval_seconds: seconds until an unanswered approval is denied; 0 for never
    :ivar schedule: iCalendar rule for the recurring proof; empty for none
    :ivar notification_type: notification type of AWX; empty for none
    :ivar notification_configuration: configuration of that type, in the format of AWX
    :ivar extra_vars: extra variables of each job
    :ivar instance_groups: names of the instance groups that run the jobs; empty for AWX's default
    :ivar forks: forks of each job
    :ivar wait: whether to wait for the first update of the projects
    """

    organization: str
    site_url: str = ""
    image: str = ""
    cluster_credential: str = ""
    name: str = "linerate.rdma"
    site_branch: str = ""
    inventory_file: str = "linerate.rdma.yml"
    scm_credential: str = ""
    playbooks_url: str = ""
    playbooks_branch: str = ""
    image_credential: str = ""
    credentials: tuple[str, ...] = ()
    controller_credential: str = ""
    approval_seconds: int = 0
    schedule: str = ""
    notification_type: str = ""
    notification_configuration: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    extra_vars: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    instance_groups: tuple[str, ...] = ()
    forks: int = 0
    wait: bool = True


@dataclasses.dataclass(frozen=True)
class AwxObject:
    """One object of AWX.

    :ivar kind: name of the module that creates it, without its collection
    :ivar name: name of the object, for messages
    :ivar arguments: arguments of the module
    """

    kind: str
    name: str
    arguments: Data


@dataclasses.dataclass(frozen=True)
class SurveyQuestion:
    """One question of a survey.

    :ivar variable: name of the variable that the answer sets
    :ivar text: the question
    :ivar help: explanation for the user
    :ivar choices: allowed answers; empty for free text
    :ivar default: preset answer; empty for none
    :ivar required: whether an answer is mandatory; without an answer the variable is not set
    """

    variable: str
    text: str
    help: str
    choices: tuple[str, ...] = ()
    default: str = ""
    required: bool = False


@dataclasses.dataclass(frozen=True)
class Template:
    """A job template of AWX to be created for one playbook.

    :ivar key: suffix of its name
    :ivar playbook: name of a playbook of the collection
    :ivar description: one line
    :ivar check: whether it runs in check mode and reports differences only
    :ivar tags: tags to run; empty for all
    :ivar survey: questions of the survey
    :ivar variables: fixed variables, which cannot be changed at launch
    :ivar any_variable: whether any variable can be set at launch
    :ivar tells: whether AWX sends a notification when its job ends
    :ivar controller: whether its job changes objects of AWX itself
    """

    key: str
    playbook: str
    description: str
    check: bool = False
    tags: tuple[str, ...] = ()
    survey: tuple[SurveyQuestion, ...] = ()
    variables: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    any_variable: bool = False
    tells: bool = False
    controller: bool = False
