# SPDX-License-Identifier: GPL-3.0-or-later

"""Version of this collection and URL of its documentation, for generated files. The version in ``galaxy.yml`` is
authoritative.
"""

from __future__ import annotations

COLLECTION_VERSION = "1.0.0"
DOCUMENTATION = "https://github.com/linerate/linerate.rdma/tree/main/docs"
