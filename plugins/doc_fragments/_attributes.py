# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other documentation may extend this.

"""Documentation of the attributes check_mode, diff_mode and idempotent, which many modules have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """The attributes of three kinds of modules.

    ``reads``: a module that only reads. ``records``: a module that changes no system, and writes files in the folder of
    the run. ``changes``: a module that changes a system, with full support of check mode and diff mode. A module that
    differs from this documents the difference itself.
    """

    READS = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and predict changes without making them.
    support: full
    details:
      - The module only reads. It returns the same result in check mode.
  diff_mode:
    description: Returns what changed or would change, in diff mode.
    support: N/A
    details:
      - The module changes nothing.
  idempotent:
    description: A second run with the same arguments reports no change.
    support: full
"""

    RECORDS = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and predict changes without making them.
    support: full
    details:
      - The module writes its output files in check mode too. It changes nothing else.
  diff_mode:
    description: Returns what changed or would change, in diff mode.
    support: none
    details:
      - The module changes no system. The files in the folder of the run are its result.
  idempotent:
    description: A second run with the same arguments reports no change.
    support: full
"""

    CHANGES = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and predict changes without making them.
    support: full
  diff_mode:
    description: Returns what changed or would change, in diff mode.
    support: full
  idempotent:
    description: A second run with the same arguments reports no change.
    support: full
"""
