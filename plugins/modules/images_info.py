#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: images_info
short_description: List the images, charts and OLM packages that a run would pull
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Lists what a disconnected site must mirror. The list covers the operators that the intent needs, the observers, the
    pods that measure, the C(NicClusterPolicy) of the profiles, and the job.
  - Reads the images of a chart from C(helm template). Installs nothing.
  - Contacts the cluster only if O(by=auto), to find out who installs operators there. It can run where the cluster is
    not reachable.
options:
  job:
    description: The variable C(rdma_job).
    type: raw
  images:
    description: Images other than those of the fabrics. The key is the variable that names the image. An empty value is
      left out.
    type: dict
    default: {}
  by:
    description: Who installs operators. V(auto) asks the cluster. It is OLM on OpenShift, and Helm elsewhere.
    type: str
    choices: [auto, helm, olm]
    default: auto
  openshift_version:
    description: Minor version of OpenShift, such as V(4.20). Names the catalogs. Required if OLM installs operators.
    type: str
    default: ""
  kubernetes_version:
    description:
      - Version of the cluster, such as V(v1.33.2), for charts that require a version.
      - If O(by=auto), the default is the version of the cluster. Otherwise it is the version that Helm assumes.
    type: str
    default: ""
  charts:
    description: Helm charts other than those of the collection. See M(linerate.rdma.operators_info).
    type: dict
    default: {}
  packages:
    description: Packages of OLM other than those of the collection. See M(linerate.rdma.operators_info).
    type: dict
    default: {}
  leave:
    description: Operators that somebody else installs. They are not in the list.
    type: list
    elements: str
    default: []
  operators:
    description: Whether operators, their charts and their packages are in the list.
    type: bool
    default: true
  ask_mirror:
    description:
      - Ask the C(mirror) of O(cluster) whether it has each image and chart of the list. Charts are then read from the
        mirror.
      - The module does not fail if something is missing. RV(mirror) shows it.
    type: bool
    default: false
  registry_auth_file:
    description:
      - File with users and passwords of registries, in the format of C(docker login), C(podman login) or C(skopeo
        login). Its content is never shown.
      - Credential helpers are not supported.
    type: path
  registry_ca:
    description: File with the certificate authority of the mirror. The default is the authorities of the system.
    type: path
  registry_seconds:
    description: Maximum time in seconds to wait for all registries together.
    type: int
    default: 60
  helm_binary:
    description: Name or path of the Helm binary.
    type: str
    default: helm
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0, if O(by=auto)
  - helm, if Helm installs operators
"""

EXAMPLES = r"""
- name: List what a mirror must have for a cluster without OLM
  linerate.rdma.images_info:
    fabrics: "{{ rdma_fabrics }}"
    by: helm
  register: images_list

- name: Show the list
  ansible.builtin.debug:
    msg: "{{ images_list.lines }}"

- name: Ask the mirror whether it has everything
  linerate.rdma.images_info:
    fabrics: "{{ rdma_fabrics }}"
    cluster:
      mirror: registry.example/mirror
    by: helm
    ask_mirror: true
    registry_auth_file: ~/.docker/config.json
  register: images_mirror
"""

RETURN = r"""
images:
  description: Images that nodes pull, in the order of their names.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The image with its registry, and its tag or digest.
      type: str
    needed_by:
      description: What starts it.
      type: list
      elements: str
    by_system:
      description: Whether an operator appends the system of the node to the tag.
      type: bool
charts:
  description: Charts that Helm pulls. Each has its C(reference), C(repository), C(version) and C(needed_by).
  returned: success
  type: list
  elements: dict
packages:
  description: Packages of OLM. Each has its C(package), C(catalog), C(channel), C(version) and C(needed_by).
  returned: success
  type: list
  elements: dict
notes:
  description: What the intent needs and a run does not pull, each with who installs it.
  returned: success
  type: list
  elements: str
unlisted:
  description: What a run would pull and the list lacks, each with the cause and the next step. If it is not empty, the
    list is not complete.
  returned: success
  type: list
  elements: str
commands:
  description: Commands for charts that neither C(oc-mirror) nor C(skopeo) copies to a registry. Replace C(MIRROR) in
    them.
  returned: success
  type: list
  elements: str
files:
  description: Text of the files. C(imageset-config.yml) is for C(oc-mirror), C(skopeo-sync.yml) for C(skopeo sync).
  returned: success
  type: dict
lines:
  description: The list as text for a terminal.
  returned: success
  type: list
  elements: str
mirror:
  description: What the registries say.
  returned: if O(ask_mirror) is set
  type: dict
  contains:
    answers:
      description: Each image and chart with its C(source), its C(place) on the mirror, its C(state) and the commands in
        C(put) that put it there.
      type: list
      elements: dict
    unlisted:
      description: As RV(unlisted).
      type: list
      elements: str
    elsewhere:
      description: Images that a chart pulls from elsewhere although its values name the mirror.
      type: list
      elements: str
complete:
  description: Whether the mirror has all of it.
  returned: if O(ask_mirror) is set
  type: bool
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.yaml import yaml_dump

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import INTENT_SPEC
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.registry import (
    Logins,
    list_secrets,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import TABLE, job_needs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.helm import read_charts
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.operators import by_olm
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.registry import parse_logins
from ansible_collections.linerate.rdma.plugins.module_utils._plan import pulls as listed
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster import pulls as render
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.check_mirror import (
    ask_mirror,
    list_foreign_images,
    on_the_mirror,
)


def read_logins(module: AnsibleModule) -> Logins:
    """Return the credentials of registries from the file that the module's option ``registry_auth_file`` names. The
    result is empty if the option is not set. The secrets are added to the values that the module hides.

    :raises RdmaError: the file cannot be read, or is not valid. The message contains no part of the file
    """
    path = module.params["registry_auth_file"]
    if not path:
        return {}
    try:
        with open(path, encoding="utf-8") as stream:
            known = parse_logins(stream.read())
    except (OSError, UnicodeDecodeError) as error:
        raise RdmaError(
            f"{path}: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}",
            "Correct operators_registry_auth_file",
        ) from None
    except RdmaError as error:
        raise RdmaError(f"{path}: {error.seen}", "Create it with: skopeo login --authfile FILE REGISTRY") from None
    module.no_log_values.update(list_secrets(known))
    return known


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    mirror = parse_intent(options["fabrics"], None, options["cluster"]).cluster.mirror
    # as the sources name it all: that is what is copied to the mirror
    here = (
        {key: value for key, value in options["cluster"].items() if key != "mirror"}
        if isinstance(options["cluster"], dict)
        else options["cluster"]
    )
    intent = parse_intent(options["fabrics"], None, here)
    images = load(dict[str, str], options["images"], "images")
    job = load(Job, options["job"], "rdma_job") if options["job"] else None
    olm, kubernetes, asks = (
        options["by"] == "olm",
        options["kubernetes_version"],
        options["ask_mirror"] and bool(mirror),
    )
    if options["by"] == "auto" and options["operators"]:
        cluster = connect(module)
        olm, kubernetes = by_olm(cluster), kubernetes or cluster.version()
    # what a package pulls its catalog alone knows, and the module olm says what the catalog lacks
    none = not options["operators"] or (olm and asks)
    wishes = collect_requests(
        options["charts"], options["packages"], [operator.name for operator in TABLE] if none else options["leave"]
    )
    if olm and not asks and not options["openshift_version"]:
        raise RdmaError(
            "openshift_version is empty, but the tags of the OLM catalogs contain the version",
            "Set it: -e operators_openshift_version=4.20",
        )
    needs, helm = job_needs(job) if job else None, options["helm_binary"]
    charts = {} if olm else listed.collect_charts(intent, needs, wishes)
    charts = on_the_mirror(charts, mirror) if asks else charts
    seen = read_charts(helm, charts, kubernetes)
    named = {**images, **({"rdma_job.image": job.image} if job else {})}
    pulls = listed.collect_pulls(intent, needs, olm, wishes, seen, named, options["openshift_version"])
    copied = render.to_copy(pulls, mirror)
    contents = {render.OC_MIRROR: render.render_image_set(copied), render.SKOPEO: render.render_sync(copied)}
    heads = render.render_heads(copied, mirror)
    files = {
        name: "".join(f"# {line}\n" for line in heads[name]) + f"---\n{yaml_dump(content, sort_keys=False)}"
        for name, content in contents.items()
    }
    answer = {
        **to_data(pulls),
        "commands": list(render.render_commands(copied, mirror)),
        "files": files,
        "lines": list(render.format_list(pulls)),
    }
    if not asks:
        return answer
    unchanged = list_foreign_images(helm, charts, seen, mirror, kubernetes)
    facts = ask_mirror(
        pulls, mirror, read_logins(module), options["registry_ca"] or "", options["registry_seconds"], unchanged
    )
    return {**answer, "mirror": to_data(facts), "complete": facts.complete}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **INTENT_SPEC,
            job={"type": "raw"},
            images={"type": "dict", "default": {}},
            by={"type": "str", "choices": ["auto", "helm", "olm"], "default": "auto"},
            openshift_version={"type": "str", "default": ""},
            kubernetes_version={"type": "str", "default": ""},
            charts={"type": "dict", "default": {}},
            packages={"type": "dict", "default": {}},
            leave={"type": "list", "elements": "str", "default": []},
            operators={"type": "bool", "default": True},
            ask_mirror={"type": "bool", "default": False},
            registry_auth_file={"type": "path"},
            registry_ca={"type": "path"},
            registry_seconds={"type": "int", "default": 60},
            helm_binary={"type": "str", "default": "helm"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "mirror" if module.params["ask_mirror"] else "")


if __name__ == "__main__":
    main()
