# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Files that belong to this ansible-playbook only, and that are removed when it ends. Its tasks run in processes of
their own, and share data by these files.
"""

from __future__ import annotations

import hashlib
import os

from ansible import constants


def path_of(subject: str, key: str) -> str:
    """Return the path of a file that keeps data for later tasks.

    :param subject: kind of the data, such as ``boots``
    :param key: run or node of the data; any text
    """
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return os.path.join(constants.DEFAULT_LOCAL_TMP, f"linerate-{subject}-{digest}.json")
