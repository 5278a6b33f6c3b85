# SPDX-License-Identifier: GPL-3.0-or-later

"""Version of this collection and where its documentation is, for what it writes. What counts is in galaxy.yml; a test
holds them together."""

from __future__ import annotations

COLLECTION_VERSION = "1.0.0"
DOCUMENTATION = "https://github.com/linerate/linerate.rdma/tree/main/docs"
