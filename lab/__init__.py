# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab: everything real that a machine without an HCA can run. ``python -m lab --help``."""
