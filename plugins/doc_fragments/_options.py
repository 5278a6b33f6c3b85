# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other documentation may extend this.

"""Options that several modules have in common; the specs beside them are INTENT_SPEC, pods_spec and FRAME_SPEC."""

from __future__ import annotations


class ModuleDocFragment:
    """``intent``: what to do. ``pods``: of a module that works in pods on the nodes. ``frame``: of the frame around the stages."""

    INTENT = r"""
options:
  fabrics:
    description: The intent, as in the variable C(rdma_fabrics).
    type: raw
    required: true
  cluster:
    description: What all fabrics share, as in the variable C(rdma_cluster).
    type: raw
"""

    PODS = r"""
options:
  nodes:
    description: Nodes that take part, as the cluster names them. The default is those of the run, by C(facts_dir).
    type: list
    elements: str
  pod_seconds:
    description: Limit of the wait for the pods, and of their removal.
    type: int
    default: 300
"""

    FRAME = r"""
options:
  stage:
    description: Name of the stage.
    type: str
    required: true
    choices: [validate, discover, fabric, reachability, platform, operators, network, virtual_functions, host, bandwidth, compare, training]
  fabrics:
    description: The variable C(rdma_fabrics), as the user wrote it.
    type: raw
  waivers:
    description: The variable C(rdma_waivers), as the user wrote it.
    type: raw
  cluster:
    description: The variable C(rdma_cluster), as the user wrote it.
    type: raw
  report_dir:
    description: Folder of the report, on the controller. Records are in its folder C(stages), facts in C(facts).
    type: path
    required: true
"""

    FACTS = r"""
options:
  facts_dir:
    description:
      - Folder of the report, on the controller. With O(run), what is seen becomes a fact there, and the answer has only counts and single values.
      - Needed where a fleet is large. A thousand answers in Ansible's variables take hours.
    type: path
  run:
    description: Identity of the run that the facts are of, as M(linerate.rdma.stage_begin) returned it.
    type: str
"""

    CLUSTER_FACTS = r"""
options:
  facts_dir:
    description:
      - Folder of the report, on the controller. With O(run), the answer becomes a fact there, and Ansible gets only counts and single values.
      - What a stage needs of earlier facts, such as the names of its nodes, is read from there, too.
    type: path
  run:
    description: Identity of the run that the facts are of, as M(linerate.rdma.stage_begin) returned it.
    type: str
  fact:
    description: Kind of the fact, for a module that a run calls more than once. The default is a kind of the module's own.
    type: str
"""

    FOLDER = r"""
options:
  facts_dir:
    description: Folder of the report, on the controller.
    type: path
    required: true
  run:
    description: Identity of the run that the facts are of, as M(linerate.rdma.stage_begin) returned it.
    type: str
    required: true
"""

    LEASE = r"""
options:
  holder:
    description:
      - Which C(ansible-playbook) the run belongs to, as M(linerate.rdma.stage_begin) and M(linerate.rdma.run_begin) returned it.
      - Whoever changes the cluster holds its C(Lease); see M(linerate.rdma.cluster_lease). By this a holder that is dead is told from one that lives.
    type: str
"""
