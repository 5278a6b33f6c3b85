# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Helm prints of a chart, for playbooks. Each filter is documented in the .yml file of its name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._observe.yaml_documents import read_documents
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.charts import definitions_text
from ansible_collections.linerate.rdma.plugins.plugin_utils._filters import filter_of

#: multus brings it, and is no operator of ours
_OF_MULTUS = ".k8s.cni.cncf.io"


@filter_of
def chart_definitions(text: typing.Any) -> typing.List[typing.Dict[str, typing.Any]]:
    """Custom resource definitions of the chart that Helm itself does not upgrade."""
    documents = read_documents(definitions_text(str(text)))
    return [
        item for item in documents if item.get("kind") == "CustomResourceDefinition" and not str(item.get("metadata", {}).get("name", "")).endswith(_OF_MULTUS)
    ]


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {"chart_definitions": chart_definitions}
