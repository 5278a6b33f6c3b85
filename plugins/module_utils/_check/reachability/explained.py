# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage reachability, for the pages to which the report links. Check ids:
``reachability.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "reachability.coverage": Explanation(
        means="Which links the pings went over, there and back. A link that no ping went over is not known to be good.",
        measured=(
            "The way of each pair by the forwarding tables, against all links that these nodes can use, each in both"
            " directions. Where the intent does not say `routing: static`, the nodes' cables alone."
        ),
        causes=(
            "A node gave no answer, so its cable stays open.",
            "The forwarding table of a switch could not be read whole.",
        ),
        look=("ibqueryerrors", "iblinkinfo"),
        remedy=(
            "See `reachability.node` and `reachability.pair` for the nodes at these links, then run the stage again."
        ),
    ),
    "reachability.node": Explanation(
        means="A node gave no answer, or has no ibping. Pairs with it were not measured.",
        measured="Answers of all steps on the node: the servers, the pings, the end of the servers.",
        causes=(
            "infiniband-diags is not on the node, or not in the observers' image.",
            "The node was lost during the stage.",
            "Another program has the user MAD class that ibping uses.",
        ),
        look=(
            "ibping -S -C mlx5_0",
            "ansible NODE -m ansible.builtin.ping -b",
        ),
        remedy="Install infiniband-diags on the node, make it answer as root, and run the stage again.",
    ),
    "reachability.pair": Explanation(
        means="Messages from one port to another are lost, or could not be measured. RDMA uses the same links.",
        measured="Management messages by ibping from port to port: how many were sent, and how many came back.",
        causes=(
            "A bad cable or transceiver on the way (some are lost).",
            "Busy nodes, which answer after `reachability_timeout_ms` (all pairs lose some, no error counter grows).",
            "No route, a port that went down, or a server that is gone (all are lost).",
            "Partition keys keep the two ports apart.",
            "ibping's server did not serve, so nothing was measured (unknown).",
            "A node was busy for a moment: packets were sent again, and none of ten times as many later (a warning).",
        ),
        look=(
            "ibtracert SOURCE_LID DESTINATION_LID",
            "ibqueryerrors",
            "ibping -c 100 LID",
            "smpquery pkeys LID",
        ),
        remedy=(
            "See `reachability.suspect` first: it says what failing pairs have in common. Then the error counters on"
            " the way: `ibtracert`, then `ibqueryerrors`."
        ),
    ),
    "reachability.port": Explanation(
        means=(
            "A port is not proven in both roles, client and server. Which role fails tells the link from the program."
        ),
        measured="The pairs of the port as a client and as a server.",
        causes=(
            "A pair of it failed: see `reachability.pair`.",
            "Nothing works either way: port, cable or switch port.",
            "One way only: the ibping server there, not the link.",
            "No partner on its rail, or no LID.",
        ),
        look=(
            "ibstat",
            "ibping -S -C mlx5_0",
            "perfquery -x LID PORT",
        ),
        remedy=(
            "See the findings `reachability.pair` of this port. Without a LID see stage `fabric`; without a partner put"
            " a second node into `rdma_nodes`."
        ),
    ),
    "reachability.scope": Explanation(
        means=(
            "The ports of the fabric are not known, so nobody pinged, or each pair sent too few packets to show a loss."
            " A pass says how many partners and packets each port had."
        ),
        measured="The members of the fabric as stage `fabric` makes them out.",
        causes=(
            "`fabric.membership` did not pass.",
            "No node that was read has a port on the fabric.",
            "`reachability_count` is less than 20.",
        ),
        look=(
            "sminfo",
            "ibstat",
        ),
        remedy="Correct what the findings of stage `fabric` name, and run both stages again.",
    ),
    "reachability.suspect": Explanation(
        means=(
            "What failing pairs have in common: a node, an HCA with its cable, a leaf, the links between two leaves, or"
            " the way of one pair."
        ),
        measured=(
            "Who passed and who failed. An element is named where pairs over it fail so much more often that chance"
            " does not explain it."
        ),
        causes=(
            "The cable from the HCA that is named to its leaf.",
            "The links between the two leaves that are named.",
            "The leaf itself: power, firmware, a line card.",
            "Partition keys, where they are named: then no cable is at fault.",
            "Several that the pairs can't tell apart, as with two nodes only.",
        ),
        look=(
            "ibqueryerrors",
            "ibtracert SOURCE_LID DESTINATION_LID",
            "iblinkinfo",
            "mlxlink -d ADDRESS -c -m",
        ),
        remedy=(
            "Look at what is named first: error counters at both ends (`ibqueryerrors`), then reseat or swap the cable,"
            " then the HCA. Then run the stage again."
        ),
    ),
}
