#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report_archive
short_description: Bring the archive of a run to where it survives the job
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Packs the folder of a run as M(linerate.rdma.evidence) does, and brings the archive and its SHA-256 checksum to a
    folder, or to an address that takes C(PUT), such as WebDAV or a signed address of S3. Runs on the controller.
  - Takes the place from the variable C(rdma_report_archive), or from E(RDMA_REPORT_ARCHIVE) where the variable is not
    set. If there is none, or the variable is empty, the module does nothing.
  - Takes the credentials from E(RDMA_REPORT_ARCHIVE_USER) and E(RDMA_REPORT_ARCHIVE_PASSWORD), or from
    E(RDMA_REPORT_ARCHIVE_TOKEN). The address, which may be signed, and the credentials are no options, so that no log
    and no result ever has them. An address is shown without its query.
  - The path of an address is that of a folder if it ends with a slash. Otherwise, it is that of the file, and C({run})
    in it stands for the ID of the run. A signed address of one file has no place for the checksum, which is only shown.
  - Does not follow redirections, and sends no credentials over plain HTTP. Proxies are those of the environment
    (E(HTTPS_PROXY), E(NO_PROXY)).
options:
  state:
    description:
      - With V(checked), writes nothing but the fact C(report_archive), which says whether the place can be used. In a
        folder, it tries to write. From an address, it wants any answer to C(HEAD), without query and credentials.
    type: str
    choices: [sent, checked]
    default: sent
  keep:
    description: Number of archives that stay in a folder, this one included. The oldest are removed. Nothing is removed
      at an address.
    type: int
    default: 100
  ca_path:
    description: File with the authority of the certificate, in PEM. The default is the authorities of the controller.
    type: path
  seconds:
    description: How long the server may give no sign.
    type: float
    default: 60
  retries:
    description: How often a server that is busy or not reached is asked again. A server that is too slow is not asked
      again.
    type: int
    default: 0
  delay:
    description: Seconds until it is asked again.
    type: float
    default: 10
  total_seconds:
    description:
      - Seconds for the whole upload, which are archive and checksum in all attempts. There is one more second for each
        64 KiB of the archive.
      - No attempt begins for which fewer than O(seconds) are left.
    type: float
    default: 180
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
attributes:
  check_mode:
    details:
      - The module sends nothing, writes into no folder, and says so. With O(state=checked), it only looks.
seealso:
  - module: linerate.rdma.evidence
  - module: linerate.rdma.report
"""

EXAMPLES = r"""
# export RDMA_REPORT_ARCHIVE=https://dav.example.com/reports/ RDMA_REPORT_ARCHIVE_TOKEN=...
- name: Bring the archive of a run to its place
  linerate.rdma.report_archive:
    facts_dir: build/report
    run: "{{ report_result.stats.run }}"
    retries: 3
"""

RETURN = r"""
place:
  description: Path or address of the archive, without the query. Empty if no place is named.
  type: str
  returned: always
  sample: https://dav.example.com/reports/rdma-evidence-20260102T030405Z-a1b2c3.tar.gz
sent:
  description: Whether the archive is there.
  type: bool
  returned: with O(state=sent)
sha256:
  description: SHA-256 checksum of the archive.
  type: str
  returned: if it is there
removed:
  description: Paths of older archives that were removed.
  type: list
  elements: str
  returned: if it is there
lines:
  description: The same as text.
  type: list
  elements: str
  returned: with O(state=sent)
again:
  description: Whether the same may succeed a moment later. This is the case for a server that is busy or not reached,
    and not for one that is too slow.
  type: bool
  returned: if it was not taken
"""
