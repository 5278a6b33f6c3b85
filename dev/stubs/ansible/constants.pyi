# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import typing

DEFAULT_LOCAL_TMP: str
COLOR_CHANGED: str
COLOR_ERROR: str
COLOR_HIGHLIGHT: str
COLOR_OK: str
COLOR_UNREACHABLE: str
COLOR_WARN: str
config: typing.Any
