# SPDX-License-Identifier: GPL-3.0-or-later

"""The version of this collection, for what it writes. The one that counts is in galaxy.yml; a test holds them together."""

from __future__ import annotations

COLLECTION_VERSION = "1.0.0"
