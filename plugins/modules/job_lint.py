#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_lint
short_description: Find what keeps the NCCL of a training job off the RDMA network
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads a job of any kind that creates pods, such as C(PyTorchJob), C(TrainJob), C(MPIJob), C(JobSet), C(Job),
    C(StatefulSet) or C(Pod). The job comes from a file, from the playbook or from the cluster. The module compares it
    with the cluster.
  - Finds variables that NCCL does not know, interfaces that no attachment creates, and resources that no node offers.
  - Finds requests that differ from limits, a missing C(IPC_LOCK) or annotation, and HCAs that the pods did not get.
  - Finds C(NCCL_IB_DISABLE=1) and a default route over the secondary network.
  - Fails unless every finding is a pass, a warning or waived. Something unknown never counts as a pass.
  - See C(docs/job.md) for the checks and the rights that they need.
options:
  path:
    description: File on the controller with the job. YAML or JSON, with one or more documents.
    type: path
  objects:
    description:
      - The job as a list of objects. A C(TrainJob) also needs its C(TrainingRuntime).
      - The filter P(linerate.rdma.render_job#filter) returns such objects under C(object).
    type: list
    elements: dict
  kind:
    description: Kind of the job in the cluster. Required with O(name). If the job runs, the module judges what its pods
      really got.
    type: str
    choices: [PyTorchJob, TrainJob, MPIJob, JobSet, Job, StatefulSet, Pod]
  name:
    description: Name of the job in the cluster.
    type: str
  namespace:
    description: Namespace of the job in the cluster.
    type: str
    default: default
  offline:
    description: Do not contact a cluster. Checks that need one are left out.
    type: bool
    default: false
  hcas:
    description:
      - Results of M(linerate.rdma.node_info) by node, as P(linerate.rdma.collect#filter) returns them.
      - With them, the module also compares the names of HCAs.
    type: dict
    default: {}
  waivers:
    description: The variable C(rdma_waivers).
    type: raw
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Check a job before you submit it
  linerate.rdma.job_lint:
    path: train.yaml

- name: Check whether a running job can use RDMA
  linerate.rdma.job_lint:
    kind: PyTorchJob
    name: fine-tune
    namespace: training
"""

RETURN = r"""
gate:
  description: V(open) if every finding is a pass, a warning or waived, otherwise V(closed). The module then fails.
  returned: always
  type: str
lines:
  description: The result as text for a terminal. The counts come first, then each finding that did not pass.
  returned: always
  type: list
  elements: str
findings:
  description: All findings, each with the waiver that covers it, if any.
  returned: always
  type: list
  elements: dict
"""

import dataclasses
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.verdict import conclude_module_findings
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint, list_jobs, list_objects
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.stack import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import JobSurroundings
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.jobs import (
    observe,
    observe_stack,
    read_job,
    read_runtimes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.yaml_documents import (
    MOST_FILE,
    read_documents,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import namespace_of

KINDS = ["PyTorchJob", "TrainJob", "MPIJob", "JobSet", "Job", "StatefulSet", "Pod"]


def read_file(path: str) -> list[dict[str, typing.Any]]:
    """Return the Kubernetes objects in a file with one or more YAML documents.

    :raises RdmaError: the file cannot be read, is too large or invalid, or contains no objects
    """
    try:
        with open(path, encoding="utf-8") as file:
            # one more character than a file may have shows that it is larger; the rest of it stays where it is
            return read_documents(file.read(MOST_FILE + 1), MOST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        raise RdmaError(f"{path}: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}") from error
    except RdmaError as error:
        raise RdmaError(f"{path}: {error.seen}", error.remedy) from error


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    waivers = load(tuple[Waiver, ...], options["waivers"] or [], "rdma_waivers")
    answers = load(dict[str, ObservedHcas], options["hcas"], "hcas")
    if options["offline"] and options["name"]:
        module.fail_json(msg="name: a job in the cluster cannot be read offline; expected path or objects")
    cluster = None if options["offline"] else connect(module)
    if cluster is not None and options["name"]:
        resources = list(read_job(cluster, options["kind"], options["namespace"], options["name"]))
    else:
        resources = read_file(options["path"]) if options["path"] else list(options["objects"] or [])
    jobs = list_jobs(resources)
    surroundings: typing.Optional[JobSurroundings] = None
    findings: tuple[Finding, ...] = ()
    if cluster is not None:
        resources += read_runtimes(cluster, jobs)
        namespaces = set(filter(None, map(namespace_of, jobs)))
        running = [(options["namespace"], options["name"])] if options["name"] else []
        # of a job whose namespace is refused, lint says so
        seen = {name: item.value for name, item in answers.items() if item.value is not None}
        stack = observe_stack(cluster, namespaces)
        surroundings = dataclasses.replace(
            observe(cluster, namespaces, running, seen, list_objects(jobs, resources)), flavors=stack.group_flavors()
        )
        findings = check(jobs, resources, surroundings, stack)
    return conclude_module_findings(module, "job", (*lint(jobs, resources, surroundings), *findings), waivers)


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_cluster_spec(
            path={"type": "path"},
            objects={"type": "list", "elements": "dict"},
            kind={"type": "str", "choices": KINDS},
            name={"type": "str"},
            namespace={"type": "str", "default": "default"},
            offline={"type": "bool", "default": False},
            hcas={"type": "dict", "default": {}},
            waivers={"type": "raw"},
        ),
        mutually_exclusive=[("path", "objects", "name")],
        required_one_of=[("path", "objects", "name")],
        required_by={"name": "kind"},
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
