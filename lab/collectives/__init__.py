# SPDX-License-Identifier: GPL-3.0-or-later

"""What stage collectives runs in the lab: Open MPI of Debian, and a stand-in for nccl-tests that goes over the VFs of the pods."""
