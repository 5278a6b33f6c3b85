#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: evidence
short_description: Packs the folder of a run into one archive, or unpacks one
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Packs facts, records, report and what the run began with, without secrets and with SHA-256 checksums, into a C(tar.gz).
  - The same folder gives the same bytes.
  - Unpacks such an archive when each file of it is what was packed, and nothing in it leads out of the folder. All of it or nothing.
  - Runs on the controller, without an inventory, a node or a cluster.
options:
  state:
    description: Whether to pack or to unpack.
    type: str
    default: packed
    choices: [packed, unpacked]
  report_dir:
    description:
      - Folder of the run, on the controller. Needed to pack.
      - To unpack, a folder that is not there yet, or holds the same already. The default is the name of the archive with C(.run) in place of C(.tar.gz).
    type: path
  archive:
    description: The archive. Needed to unpack. To pack, the default is C(rdma-evidence-<run>.tar.gz) beside the folder.
    type: path
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what it would return without it.
    support: full
    details: The archive or the folder is written in check mode too; it is the answer.
  diff_mode:
    description: Will return details on what has changed, when in diff mode.
    support: none
    details: It changes nothing of the system; the archive or the folder is its answer.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
seealso:
  - module: linerate.rdma.judge
"""

EXAMPLES = r"""
- name: Pack what the last run left
  linerate.rdma.evidence:
    report_dir: build/report

- name: Unpack what somebody sent
  linerate.rdma.evidence:
    state: unpacked
    archive: rdma-evidence-20260102T030405Z-a1b2c3.tar.gz
  register: evidence_unpacked
"""

RETURN = r"""
archive:
  description: The archive, as an absolute path.
  type: str
  returned: success
report_dir:
  description: Folder of the run, as an absolute path.
  type: str
  returned: success
run:
  description: Identity of the run.
  type: str
  returned: success
files:
  description: How many files of the run are in the archive.
  type: int
  returned: success
left_out:
  description: Paths in the folder that were not packed, because they are no regular files or nothing that a run leaves.
  type: list
  elements: str
  returned: success
"""
