#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: awx_objects
short_description: Make the objects of the collection in AWX
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Makes two projects, an execution environment, a credential type, an inventory with its source, a job template for
    each stage and for each task beside them, a workflow with an approval, a schedule and a notification template. With
    O(state=absent), removes them.
  - Calls the modules of O(collection), one after the other. It makes no credentials and no organization.
  - The role P(linerate.rdma.awx#role) uses it. Runs on the controller.
options:
  state:
    description:
      - With V(absent), removes all that an earlier call with the same O(name) and O(organization) made. Only these two
        are needed then.
    type: str
    choices: [present, absent]
    default: present
  site_url:
    description: Git repository with the file of the inventory, and C(group_vars) with the intent beside it. Needed with
      O(state=present).
    type: str
    default: ""
  site_branch:
    description: Branch, tag or commit of it. The default is that of the repository.
    type: str
    default: ""
  inventory_file:
    description: Path of the file of the inventory in that repository. Its name ends with C(linerate.rdma.yml) if it is
      one of P(linerate.rdma.nodes#inventory).
    type: str
    default: linerate.rdma.yml
  scm_credential:
    description: Name of the credential of AWX for O(site_url).
    type: str
    default: ""
  playbooks_url:
    description: Git repository of this collection.
    type: str
    default: ""
  playbooks_branch:
    description: Its branch, tag or commit. The default is the tag of the release of this collection, which should be
      the one in O(image).
    type: str
    default: ""
  image:
    description: Image of the execution environment. Needed with O(state=present).
    type: str
    default: ""
  image_credential:
    description: Name of the credential of AWX for the registry of O(image).
    type: str
    default: ""
  cluster_credential:
    description: Name of the credential of AWX for the API server, of AWX's type C(OpenShift or Kubernetes API Bearer
      Token). Needed with O(state=present).
    type: str
    default: ""
  credentials:
    description: Names of other credentials that each job has, such as one for ssh and one for BMCs.
    type: list
    elements: str
    default: []
  controller_credential:
    description:
      - Name of a credential for AWX itself, of AWX's type C(Red Hat Ansible Automation Platform).
      - If it is set, a job of the workflow puts the text of the plan into the approval. Otherwise, the approval leads
        to the output of the plan.
    type: str
    default: ""
  schedule:
    description: Recurrence rule (RFC 5545) of the proof on day 2. An empty text makes no schedule.
    type: str
    default: ""
  notification_type:
    description: Type of the notification, such as V(slack) or V(webhook). An empty text makes no notification.
    type: str
    default: ""
  notification_configuration:
    description: What AWX wants to know for this type.
    type: dict
    default: {}
  extra_vars:
    description: Variables of each job.
    type: dict
    default: {}
  instance_groups:
    description: Names of the instance groups or container groups that run the jobs.
    type: list
    elements: str
    default: []
  forks:
    description: Forks of each job. V(0) leaves it to Ansible.
    type: int
    default: 0
  wait:
    description: Wait for the first update of the projects. The job templates name their playbooks, so that AWX refuses
      them before that.
    type: bool
    default: true
extends_documentation_fragment:
  - linerate.rdma._attributes.changes
  - linerate.rdma._options.awx
attributes:
  check_mode:
    details:
      - An object whose parts are not there yet counts as one that would be made.
  diff_mode:
    support: none
    details:
      - RV(objects) names what changed.
  idempotent:
    details:
      - AWX does not show the secrets of O(notification_configuration). If it has any, AWX's module reports a change
        each time.
seealso:
  - module: linerate.rdma.awx_approval
"""

EXAMPLES = r"""
- name: Make all objects
  linerate.rdma.awx_objects:
    organization: Default
    site_url: https://git.example.com/site.git
    playbooks_url: https://github.com/linerate/linerate.rdma
    playbooks_branch: 1.0.0
    image: registry.example.com/linerate-rdma-ee:1.0.0
    cluster_credential: gpu-cluster

- name: Remove them
  linerate.rdma.awx_objects:
    organization: Default
    state: absent
"""

RETURN = r"""
objects:
  description: What was made, changed or removed, in this order.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: Name of the module that did it, without that of its collection.
      type: str
    name:
      description: Name of the object, or identifier of the node of the workflow.
      type: str
  sample: [{kind: job_template, name: "linerate.rdma: plan"}]
"""
