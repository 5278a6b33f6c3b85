# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other documentation may extend this.

"""Attributes that several modules declare in the same words."""

from __future__ import annotations


class ModuleDocFragment:
    """``reads``: a module that only reads. ``records``: one of the frame, which writes nothing but the record of the run."""

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

    RECORDS = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what it would return without it.
    support: full
  diff_mode:
    description: Will return details on what has changed, when in diff mode.
    support: none
    details: It changes nothing of the system; the record is its answer.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
"""
