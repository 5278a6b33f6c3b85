#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nodes_info
short_description: Look at many nodes at once through their observers
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads HCAs, platform, firmware, clock, tuning and subnet managers of all nodes that have an observer, and stores
    them as facts. Each node is asked with one command in its pod.
  - The kind V(drop_in) is whether the drop-in that the role P(linerate.rdma.host#role) writes for containerd's unit is
    on the node.
  - The kind V(kernel_arguments_left) is which kernel arguments M(linerate.rdma.kernel_arguments) has added for the next
    boot of the node.
  - The kind V(firmware) takes C(devlink) and C(mstconfig) from the image of the observers. Reading all settings of an
    HCA takes a second or more.
  - Asks many nodes at the same time from one process. This costs a fraction of what a task for each node costs.
  - Needs the fact of M(linerate.rdma.observers) from the same run. A node without an observer gets the reason in place
    of its facts.
options:
  kinds:
    description: Kinds of facts to read. The default is all kinds but V(drop_in), V(kernel_arguments_left) and
      V(neighbours).
    type: list
    elements: str
  nodes:
    description:
      - Names of nodes to look at again. The module looks at those that the run reaches through observers, and leaves
        the others to M(linerate.rdma.node_info).
      - What was seen of them before is forgotten, even if no answer comes. The default is to look at all nodes that
        have an observer.
    type: list
    elements: str
  since:
    description:
      - Name of an earlier point in time of the run, at which the HCAs were kept as C(hcas_<since>). RV(missing) then
        says how many nodes lack something that they had. V(before_reset) is what M(linerate.rdma.node_roll) keeps of
        each node that it resets.
      - Needs O(nodes).
    type: str
  wait_seconds:
    description:
      - With O(since), time in seconds in which nodes that lack something are asked again. An observer, a driver and a
        link need a moment after a reset.
      - A look that has begun is not cut short.
    type: int
    default: 0
  host_files:
    description: Folder in which the observer has the files of its node.
    type: path
    default: /host
  python:
    description: Path of Python 3.9 or later in the image of the observers.
    type: str
    default: /usr/bin/python3
  parallel:
    description: How many nodes to ask at the same time. The default is 64, or 512 if O(kinds) contains V(neighbours),
      because a node that listens for switches waits for half a minute and costs nothing.
    type: int
  seconds:
    description: Limit for the answer of one node.
    type: int
    default: 120
extends_documentation_fragment:
  - linerate.rdma._options.reading
  - linerate.rdma._options.folder
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Read the HCAs of all nodes that have an observer
  linerate.rdma.nodes_info:
    facts_dir: build/report
    run: "{{ stage_result.run }}"
    kinds: [hcas]
"""

RETURN = r"""
asked:
  description: Number of nodes.
  returned: success
  type: int
  sample: 1000
unanswered:
  description: Number of nodes that lack at least one of the facts. The facts hold the reasons.
  returned: success
  type: int
  sample: 0
missing:
  description: Number of nodes that lack HCAs or links that they had at the moment O(since), or that lack at least one
    of the facts.
  returned: if O(since) is set
  type: int
  sample: 0
seconds:
  description: How long it took.
  returned: success
  type: float
  sample: 7.4
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    make_cluster_spec,
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import find_missing_since
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import (
    HOST,
    Observer,
    load_observers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.fact_kinds import choose_kinds_for_observers
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.look_by_observers import (
    PYTHON,
    ObserveRequest,
    count_parallel,
    look,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.poll import LOOK_AGAIN_SECONDS, poll
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options, start = module.params, time.monotonic()
    kinds = choose_kinds_for_observers(options["kinds"])
    folder = FactFolder(options["facts_dir"], options["run"])
    chosen = None if options["nodes"] is None else set(options["nodes"]).intersection(folder.start().by_pods)
    # an answer that does not come must not leave in its place what was seen at another moment
    for node in chosen or ():
        for kind in kinds:
            folder.write(kind, node, error="failed: it was queried again and did not respond")
    roots, netdevs, arguments = (tuple(options[name]) for name in ("sysfs", "netdevs", "kernel_arguments"))
    asked = ObserveRequest(
        kinds,
        roots,
        netdevs,
        options["python"],
        options["seconds"],
        options["host_files"],
        arguments,
        options["beside_infiniband"],
    )
    namespace, observers = ("", ()) if chosen == set() else _read_observers(folder, chosen)
    parallel = options["parallel"] or count_parallel(kinds)
    unanswered: dict[str, bool] = {}
    lacks: dict[str, bool] = {}

    def look_again() -> tuple[str, ...]:
        """Observe those nodes that have no complete answer yet, in the first call all nodes, and write their answers as
        facts. Return the nodes that still have no complete answer, or that lack HCAs or links that they had before.
        """
        todo = [one for one in observers if lacks.get(one.node, True)]
        for node, shown in look(connect(module), namespace, todo, asked, parallel) if todo else ():
            for kind, one in shown.items():
                folder.write(kind, node, one.value, one.error)
            failed = any(one.error is not None for one in shown.values())
            unanswered[node] = failed
            lacks[node] = bool(
                options["since"]
                and (
                    failed or ("hcas" in shown and _has_lost_hcas(folder, node, options["since"], shown["hcas"].value))
                )
            )
        return tuple(node for node, lacking in lacks.items() if lacking)

    def words(nodes: tuple[str, ...]) -> tuple[str, ...]:
        return (f"nodes that report less than before: {len(nodes)} ({', '.join(nodes[:5])})",) if nodes else ()

    with open_progress(options["progress_file"]) as say:
        missing = poll(
            look_again,
            words,
            "they report as much as before",
            options["wait_seconds"],
            LOOK_AGAIN_SECONDS,
            time.monotonic,
            time.sleep,
            say,
        )
    counts = {
        "asked": len(observers),
        "unanswered": sum(unanswered.values()),
        **({"missing": len(missing)} if options["since"] else {}),
    }
    return {**counts, "seconds": round(time.monotonic() - start, 1)}


def _has_lost_hcas(folder: FactFolder, node: str, since: str, hcas: typing.Any) -> bool:
    """Return whether the present HCAs of a node lack HCAs or links that it had at the moment ``since`` of the run. HCAs
    that cannot be compared count as a loss.
    """
    try:
        return bool(find_missing_since(folder, node, since, hcas))
    except RdmaError:
        return True


def _read_observers(
    folder: FactFolder, chosen: typing.Optional[typing.Container[str]]
) -> tuple[str, tuple[Observer, ...]]:
    """Return the namespace of the observers of the run, and the observers of the chosen nodes.

    :param chosen: names of nodes; None for the observers of all nodes
    :raises RdmaError: the run has no observers
    """
    fact = folder.value("observers")
    if fact is None:
        raise RdmaError(
            "this run has no observers", "Start them in the same run with the module linerate.rdma.observers"
        )
    found = load_observers(fact)
    return found.namespace, tuple(one for one in found.nodes if chosen is None or one.node in chosen)


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_cluster_spec(
            facts_dir={"type": "path", "required": True},
            run={"type": "str", "required": True},
            kinds={"type": "list", "elements": "str"},
            nodes={"type": "list", "elements": "str"},
            since={"type": "str"},
            wait_seconds={"type": "int", "default": 0},
            progress_file={"type": "path"},
            sysfs={"type": "list", "elements": "path", "default": ["/sys"]},
            netdevs={"type": "list", "elements": "str", "default": []},
            kernel_arguments={"type": "list", "elements": "str", "default": []},
            beside_infiniband={"type": "bool", "default": False},
            host_files={"type": "path", "default": HOST},
            python={"type": "str", "default": PYTHON},
            parallel={"type": "int"},
            seconds={"type": "int", "default": 120},
        ),
        required_by={"since": "nodes"},
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
