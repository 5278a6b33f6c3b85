# SPDX-License-Identifier: GPL-3.0-or-later

"""Image of stage collectives in the lab: Debian's Open MPI, and a stand-in for nccl-tests over the VFs of the pods."""
