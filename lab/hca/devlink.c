// SPDX-License-Identifier: GPL-2.0
/* What "devlink dev info" says of a PF, in the words of mlx5_core: which firmware runs, and which one it has. */
#include <net/devlink.h>

#include "hca.h"

static int put_version(struct devlink_info_req *req, const char *name, const char *value)
{
	int error = devlink_info_version_running_put(req, name, value);

	return error ?: devlink_info_version_stored_put(req, name, value);
}

static int info_get(struct devlink *devlink, struct devlink_info_req *req, struct netlink_ext_ack *extack)
{
	int error;

	error = devlink_info_driver_name_put(req, "mlx5_core");
	if (!error)
		error = devlink_info_version_fixed_put(req, "fw.psid", HCA_BOARD_ID);
	if (!error)
		error = put_version(req, "fw.version", HCA_FW_VERSION);
	if (!error)
		error = put_version(req, DEVLINK_INFO_VERSION_GENERIC_FW, HCA_FW_VERSION);
	return error;
}

static const struct devlink_ops ops = {
	.info_get = info_get,
};

int hca_devlink_create(struct hca_function *function)
{
	/* a VF of mlx5_core has one as well, which nothing here needs */
	if (function->vf >= 0)
		return 0;
	function->devlink = devlink_alloc(&ops, 0, &function->pdev->dev);
	if (!function->devlink)
		return -ENOMEM;
	devlink_register(function->devlink);
	return 0;
}

void hca_devlink_remove(struct hca_function *function)
{
	if (!function->devlink)
		return;
	devlink_unregister(function->devlink);
	devlink_free(function->devlink);
}
