# SPDX-License-Identifier: GPL-3.0-or-later

"""Tools of those who work on the collection; each is run as ``python3 -m dev.<name>`` from the root of the checkout."""
