#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: chart_definitions
short_description: Read the custom resource definitions of a chart that Helm does not upgrade
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads what C(helm template --include-crds) prints, and returns the custom resource definitions from the C(crds)
    folders of the chart and its subcharts.
  - Helm installs these once, and never upgrades them. Definitions among the templates of the chart are left out,
    because Helm upgrades them.
  - Leaves out the definition of C(NetworkAttachmentDefinition), which multus owns.
  - With O(operator), the module reads the definitions of these names in the cluster. It fails if a definition belongs
    to Argo CD, Flux, Fleet, OLM or another Helm release, and differs from that of the chart. It leaves out a definition
    of such an owner that does not differ.
  - Helm has 120 seconds and may print 8 MiB. Then it is ended, and the module fails.
  - The role P(linerate.rdma.operators#role) calls this module. It is of little use elsewhere.
options:
  chart:
    description: An OCI reference, a folder or an archive. With O(repository), the name of the chart there.
    type: str
    required: true
  repository:
    description: Address of the repository of the chart.
    type: str
    default: ""
  version:
    description: Version of the chart.
    type: str
    default: ""
  release:
    description: Name of the Helm release.
    type: str
    required: true
  namespace:
    description: Namespace of the release.
    type: str
    required: true
  values:
    description: Values of the release.
    type: dict
    default: {}
  operator:
    description: Name of the operator, for messages. By default, the module does not contact a cluster.
    type: str
    default: ""
  kubernetes_version:
    description: Version of the cluster, which a chart may ask for. The default is what Helm takes for it.
    type: str
    default: ""
  helm_binary:
    description: Name or path of the Helm binary.
    type: str
    default: helm
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Read the definitions of a chart
  linerate.rdma.chart_definitions:
    chart: oci://registry.example.com/charts/network-operator
    version: 26.4.1
    release: network-operator
    namespace: nvidia-network-operator
  register: chart_result

- name: Upgrade them
  kubernetes.core.k8s:
    definition: "{{ chart_result.definitions }}"
    apply: true
    server_side_apply: {field_manager: linerate.rdma, force_conflicts: true}
"""

RETURN = r"""
definitions:
  description: The custom resource definitions.
  returned: success
  type: list
  elements: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorChart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import read_existing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.helm import read_definitions
from ansible_collections.linerate.rdma.plugins.module_utils._plan.chart_definitions import select_definitions


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    cluster = connect(module) if options["operator"] else None
    chart = OperatorChart(
        options["chart"], options["version"], options["namespace"], options["release"], options["repository"]
    )
    found = read_definitions(options["helm_binary"], chart, options["values"], options["kubernetes_version"])
    if cluster is not None:
        pairs = [(item, read_existing(cluster, item)) for item in found]
        return {"definitions": list(select_definitions(options["operator"], chart, pairs))}
    return {"definitions": list(found)}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_cluster_spec(
            chart={"type": "str", "required": True},
            repository={"type": "str", "default": ""},
            version={"type": "str", "default": ""},
            release={"type": "str", "required": True},
            namespace={"type": "str", "required": True},
            values={"type": "dict", "default": {}},
            operator={"type": "str", "default": ""},
            kubernetes_version={"type": "str", "default": ""},
            helm_binary={"type": "str", "default": "helm"},
        ),
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
