# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The version of this collection, for what it writes. The one that counts is in galaxy.yml; a test holds them together."""

from __future__ import annotations

COLLECTION_VERSION = "1.0.0"
