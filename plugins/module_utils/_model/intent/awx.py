# SPDX-License-Identifier: GPL-3.0-or-later

"""What an AWX shall have of the collection, before and after it has a form."""

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
    """The settings of an AWX that an admin gives.

    :ivar name: that all objects begin with
    :ivar organization: they belong to it; it is there already
    :ivar site_url: repository with the file of the inventory and the intent beside it
    :ivar inventory_file: path of that file in it
    :ivar scm_credential: name of the credential for that repository; empty for none
    :ivar playbooks_url: repository with this collection's playbooks
    :ivar playbooks_branch: branch, tag or commit of it
    :ivar image: of the execution environment
    :ivar image_credential: name of the credential of its registry; empty for none
    :ivar cluster_credential: name of the credential for the API server of the cluster
    :ivar credentials: names of others that each job has
    :ivar controller_credential: name of a credential for AWX itself; empty where the plan's text is not to be put into
        the approval
    :ivar approval_seconds: until an approval that nobody answers is denied; 0 for never
    :ivar schedule: iCalendar rule of the proof on day 2; empty for none
    :ivar notification_type: as AWX calls it; empty for none
    :ivar notification_configuration: of that type, as AWX wants it
    :ivar extra_vars: of each job
    :ivar instance_groups: names of those that run the jobs; empty for AWX's default
    :ivar forks: of each job
    :ivar wait: for the first update of the projects
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

    :ivar kind: name of the module that makes it, without that of its collection
    :ivar name: for the reader
    :ivar arguments: of the module
    """

    kind: str
    name: str
    arguments: Data


@dataclasses.dataclass(frozen=True)
class SurveyQuestion:
    """One of a survey.

    :ivar variable: that the answer becomes
    :ivar text: what is asked
    :ivar help: what the reader should know
    :ivar choices: empty for a line of text
    :ivar default: the answer that is there already; empty for none
    :ivar required: whether it must be answered; without an answer the variable is not set
    """

    variable: str
    text: str
    help: str
    choices: tuple[str, ...] = ()
    default: str = ""
    required: bool = False


@dataclasses.dataclass(frozen=True)
class Template:
    """A job template.

    :ivar key: what its name ends with
    :ivar playbook: name of a playbook of the collection
    :ivar description: one line
    :ivar check: runs in check mode and shows what would differ
    :ivar tags: that run alone; empty for all
    :ivar survey: its questions
    :ivar variables: its own, which nobody can change when it is launched
    :ivar any_variable: whether whoever launches it may set any variable
    :ivar tells: whether its end is told to those who are notified
    :ivar controller: whether it changes AWX itself
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
