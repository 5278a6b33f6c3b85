# SPDX-License-Identifier: GPL-3.0-or-later

"""The namespace in which pods measure. It is none of the jobs' namespaces: whoever may make pods in those gets no right from what a measurement needs."""

from __future__ import annotations

#: of the pods that measure
NAMESPACE = "linerate-measure"
#: label of the namespace: it is the collection's own, or an admin has prepared it
LABEL, OWN, PREPARED = "linerate.rdma/measure", "own", "prepared"
