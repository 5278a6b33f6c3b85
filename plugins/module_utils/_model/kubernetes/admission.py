# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of the objects that allow the measuring pods to run. Only OpenShift needs them, for its
SecurityContextConstraints.
"""

from __future__ import annotations

#: of the SecurityContextConstraints, of the ServiceAccount that may use them, and of the Role and RoleBinding between
#: the two
ACCOUNT = "linerate-rdma"
#: API group that OpenShift serves, and no other cluster
OPENSHIFT_GROUP = "security.openshift.io"
#: what an admin applies where the user may not make these objects
MANIFEST = "docs/rbac/measuring-openshift.yml"
