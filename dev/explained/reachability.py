# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage reachability, for the pages to which the report links. Check ids:
``reachability.*``.
"""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "reachability.coverage": Explanation(
        means="Which links the pings used, in both directions. A link without a ping is not verified.",
        measured=(
            "The path of each pair according to the forwarding tables, compared with all links that these nodes can"
            " use, each in both directions. If the intent does not set `routing: static`, only the cables of the nodes."
        ),
        causes=(
            "A node did not respond, so its cable was not tested.",
            "The forwarding table of a switch could not be read completely.",
        ),
        look=("ibqueryerrors", "iblinkinfo"),
        remedy=(
            "Check the findings `reachability.node` and `reachability.pair` of the nodes at these links, then run stage"
            " `reachability` again."
        ),
    ),
    "reachability.node": Explanation(
        means="A node did not respond, or ibping is not installed on it. Pairs with this node were not measured.",
        measured="The results of all steps on the node: start of the servers, pings, stop of the servers.",
        causes=(
            "infiniband-diags is not installed on the node, or is not in the image of the pods that inspect the nodes.",
            "The node became unreachable during the stage.",
            "Another program uses the user MAD class that ibping needs.",
        ),
        look=(
            "ibping -S -C mlx5_0",
            "ansible NODE -m ansible.builtin.ping -b",
        ),
        remedy=(
            "Install infiniband-diags on the node, and make the node reachable as root. Then run stage `reachability`"
            " again."
        ),
    ),
    "reachability.pair": Explanation(
        means="Messages from one port to another are lost, or could not be measured. RDMA traffic uses the same links.",
        measured=(
            "Management messages that ibping sends from port to port: the number of messages sent and the number of"
            " answers received."
        ),
        causes=(
            "A faulty cable or transceiver on the path (some messages are lost).",
            (
                "Busy nodes, which answer later than `reachability_timeout_ms` (all pairs lose some messages, and no"
                " error counter increases)."
            ),
            "No route, a port that went down, or a server that stopped (all messages are lost).",
            "Partition keys keep the two ports apart.",
            "The ibping server did not run, so nothing was measured (unknown).",
            (
                "A node was busy for a moment: ibping repeated some packets, but in a later run with ten times as many"
                " packets it repeated none (warning)."
            ),
        ),
        look=(
            "ibtracert SOURCE_LID DESTINATION_LID",
            "ibqueryerrors",
            "ibping -c 100 LID",
            "smpquery pkeys LID",
        ),
        remedy=(
            "Check the finding `reachability.suspect` first: it names common causes of the failing pairs. Then check"
            " the error counters on the path: `ibtracert`, then `ibqueryerrors`. Then run stage `reachability` again."
        ),
    ),
    "reachability.port": Explanation(
        means=(
            "A port was not verified in both roles, client and server. The failing role shows whether the link or the"
            " program is the cause."
        ),
        measured="The results of all pairs of the port, as a client and as a server.",
        causes=(
            "A pair of the port failed: see `reachability.pair`.",
            "The port fails in both directions: port, cable or switch port.",
            "The port fails in only one direction: the ibping server is the cause, not the link.",
            "The port has no partner on its rail, or no LID.",
        ),
        look=(
            "ibstat",
            "ibping -S -C mlx5_0",
            "perfquery -x LID PORT",
        ),
        remedy=(
            "Check the findings `reachability.pair` of this port. If the port has no LID, check the findings of stage"
            " `fabric`. If it has no partner, add a second node to `rdma_nodes`. Then run stage `reachability` again."
        ),
    ),
    "reachability.scope": Explanation(
        means=(
            "The ports of the fabric could not be determined, so no pings were sent, or each pair sent too few packets"
            " to show a loss. A pass reports the number of partners and packets of each port."
        ),
        measured="The members of the fabric, as stage `fabric` determines them.",
        causes=(
            "The finding `fabric.membership` did not pass.",
            "None of the nodes that were read has a port on the fabric.",
            "`reachability_count` is less than 20.",
        ),
        look=(
            "sminfo",
            "ibstat",
        ),
        remedy=(
            "Correct the causes of the findings of stage `fabric`, then run stages `fabric` and `reachability` again."
        ),
    ),
    "reachability.suspect": Explanation(
        means=(
            "A common cause of failing pairs: a node, an HCA with its cable, a leaf, the links between two leaves, or"
            " the path of one pair."
        ),
        measured=(
            "The passing and failing pairs. The check names an element if pairs that use it fail significantly more"
            " often than other pairs."
        ),
        causes=(
            "The cable from the named HCA to its leaf.",
            "The links between the two named leaves.",
            "The leaf itself: power, firmware or a line card.",
            "Partition keys, if the finding names them: then no cable is faulty.",
            "Several elements that the pairs cannot distinguish, for example with only two nodes.",
        ),
        look=(
            "ibqueryerrors",
            "ibtracert SOURCE_LID DESTINATION_LID",
            "iblinkinfo",
            "mlxlink -d ADDRESS -c -m",
        ),
        remedy=(
            "Check the component in the subject first: read the error counters at both ends of its cable"
            " (`ibqueryerrors`), drain the node, and reseat or replace the cable. If the pings still fail, replace"
            " the HCA. Then run stage `reachability` again."
        ),
    ),
}
