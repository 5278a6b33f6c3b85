# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# What the collection uses of ansible.plugins.lookup.

import typing

class LookupBase:
    def set_options(self, *, direct: typing.Any = ...) -> None: ...
    def get_option(self, option: str) -> typing.Any: ...
    def find_file_in_search_path(
        self, myvars: typing.Any, subdir: str, needle: str, ignore_missing: bool = ...
    ) -> str | None: ...
