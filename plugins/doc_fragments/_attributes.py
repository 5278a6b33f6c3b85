# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other documentation may extend this.

"""Attributes that several modules declare in the same words."""

from __future__ import annotations


class ModuleDocFragment:
    """``linerate.rdma._attributes.reads``: a module that only reads."""

    READS = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and tell what it would do.
    support: full
    details:
      - It changes nothing in either mode.
  diff_mode:
    description: Shows what it would change.
    support: none
    details:
      - It changes nothing.
  idempotent:
    description: A second run changes nothing.
    support: full
"""
