// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Stands in for nccl-tests and NCCL in the lab, which has no GPU: the ranks of mpirun make rings over the devices that NCCL_IB_HCA names, and move
 * floats in host memory around them. Between nodes they go by verbs (RC, connected by rdma_cm), or by TCP where a rank has no RDMA device that it may use;
 * inside of a node through shared memory. What it prints has the forms of nccl-tests 2.19.6 and NCCL 2.28.9. Each line says what was done:
 * NET/IB is a channel over verbs, NET/Socket one over TCP, SHM one through shared memory. It never says GPUDirect RDMA.
 *
 * The name that it is called by is the collective: all_reduce_perf, all_gather_perf, reduce_scatter_perf.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <mpi.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_DEVICES 16
#define MOST_RANKS 512
#define SLOTS 8
#define SLOT_BYTES 32768
#define SHARED_BYTES (256 * 1024)
#define SPINS 20
#define IDLE_NANOSECONDS 200000
#define RESOLVE_MILLISECONDS 20000

enum way { VERBS, TCP, SHARED };

/* A stretch of memory that two ranks of a node see. */
struct shared {
	volatile uint64_t written, read;
	char bytes[SHARED_BYTES];
};

/* One direction of the connection of two ranks on a channel: bytes go in at one end and come out at the other. */
struct pipe {
	enum way way;
	bool out;
	int device;			/* of the HCAs of this rank, which counts from 0 */
	struct shared *shared;
	int socket;
	struct rdma_cm_id *listener, *id;
	struct ibv_mr *mr;
	char *memory;			/* SLOTS of data, and a slot for the words of credit */
	int free[SLOTS], free_count;	/* of an outgoing one: slots that are not being sent */
	int credits;			/* of an outgoing one: slots that the other end has free */
	int filled[SLOTS], length[SLOTS], first, count, offset;	/* of an incoming one: slots with data, in their order */
	pthread_t thread;
};

/* What the other ranks must know of a rank's end of a channel. */
struct address {
	enum way way;
	struct sockaddr_in at;
};

struct device {
	char name[64], path[512], address[64];
	struct in_addr ip;
};

/* What each rank tells all others at first. */
struct member {
	char host[64];
	int pid, gpu, physical, world, devices;
};

/* A channel: a ring over all ranks of the communicator, and where this rank is in it. */
struct channel {
	int ring[MOST_RANKS], place;
	struct pipe in, out;
	/* of the collective that runs */
	int step, steps;
	size_t sent, received;
	char *scratch;
};

static int world_rank, world_size, rank, size, color, local_rank, nodes, local_size;
static MPI_Comm group;
static struct member *members;			/* of the communicator */
static char host[64], oob[IFNAMSIZ];
static struct in_addr oob_address;
static struct device devices[MOST_DEVICES];
static int device_count;
static struct channel channels[MOST_DEVICES];
static int channel_count;
static FILE *log_file;
static const char *log_parts;
static int gpu, physical_gpu, pid;
static int seconds_at_most;

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static bool is_set(const char *name)
{
	return setting(name) && strcmp(setting(name), "0");
}

/* A line of NCCL, as far as NCCL_DEBUG and NCCL_DEBUG_SUBSYS want it. */
static void say(const char *part, const char *form, ...)
{
	char text[4096];
	va_list words;

	if (!log_file || (strcmp(part, "WARN") && !strstr(log_parts, part) && strcmp(log_parts, "ALL")))
		return;
	va_start(words, form);
	vsnprintf(text, sizeof(text), form, words);
	va_end(words);
	if (strcmp(part, "WARN")) {
		fprintf(log_file, "%s:%d:%ld [%d] NCCL INFO %s\n", host, pid, syscall(SYS_gettid), gpu, text);
	} else {
		char stamp[64];
		time_t now = time(NULL);

		strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", localtime(&now));
		fprintf(log_file, "\n[%s] %s:%d:%ld [%d] stand_in.c NCCL WARN %s\n", stamp, host, pid, syscall(SYS_gettid), gpu, text);
	}
	fflush(log_file);
}

/* End all ranks with an error, as nccl-tests does: two lines, and the exit code 3. */
static void fail(const char *form, ...)
{
	char text[1024];
	va_list words;

	va_start(words, form);
	vsnprintf(text, sizeof(text), form, words);
	va_end(words);
	say("WARN", "%s", text);
	printf("%s: Test NCCL failure stand_in.c '%s'\n .. %s pid %d: Test failure stand_in.c\n", host, text, host, pid);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 3);
	exit(3);
}

static void out_of_time(int number)
{
	static const char text[] = "Test timeout (-T) in stand_in.c\n";

	(void)number;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(5);
	_exit(4);
}

static void open_log(void)
{
	const char *level = setting("NCCL_DEBUG"), *path = setting("NCCL_DEBUG_FILE");
	char name[512];
	size_t end = 0;

	log_parts = setting("NCCL_DEBUG_SUBSYS") ? setting("NCCL_DEBUG_SUBSYS") : "INIT,BOOTSTRAP,ENV";
	if (!level || (strcmp(level, "INFO") && strcmp(level, "TRACE")))
		return;
	log_file = stdout;
	for (; path && *path && end < sizeof(name) - 128; path++) {
		if (path[0] == '%' && (path[1] == 'h' || path[1] == 'p'))
			end += *++path == 'h' ? sprintf(name + end, "%s", host) : sprintf(name + end, "%d", pid);
		else
			name[end++] = *path;
	}
	name[end] = 0;
	if (end && !(log_file = fopen(name, "w")))
		log_file = stdout;
}

/* The interface of NCCL_SOCKET_IFNAME, or the first that has an address. */
static void find_oob(void)
{
	const char *wanted = setting("NCCL_SOCKET_IFNAME");
	bool exactly = wanted && *wanted == '=';
	struct ifaddrs *all, *item;

	if (wanted && exactly)
		wanted++;
	if (getifaddrs(&all))
		fail("no socket interface found");
	for (item = all; item && !*oob; item = item->ifa_next) {
		if (!item->ifa_addr || item->ifa_addr->sa_family != AF_INET || (item->ifa_flags & IFF_LOOPBACK))
			continue;
		if (wanted && (exactly ? strcmp(item->ifa_name, wanted) : strncmp(item->ifa_name, wanted, strlen(wanted))))
			continue;
		snprintf(oob, sizeof(oob), "%s", item->ifa_name);
		oob_address = ((struct sockaddr_in *)item->ifa_addr)->sin_addr;
	}
	freeifaddrs(all);
	if (!*oob)
		fail("Bootstrap : no socket interface found");
}

/* Whether NCCL_IB_HCA lets a device be used. */
static bool is_named(const char *name)
{
	const char *wanted = setting("NCCL_IB_HCA");
	bool without, exactly, found = false;
	char list[2048], *word, *rest;

	if (!wanted)
		return true;
	without = *wanted == '^';
	wanted += without;
	exactly = *wanted == '=';
	snprintf(list, sizeof(list), "%s", wanted + exactly);
	for (word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		word[strcspn(word, ":")] = 0;
		found = found || (exactly ? !strcmp(name, word) : !strncmp(name, word, strlen(word)));
	}
	return found != without;
}

static int by_place(const void *one, const void *other)
{
	return strcmp(((const struct device *)one)->path, ((const struct device *)other)->path);
}

/* The devices that this rank may use: their port is active, and rdma_cm finds them by an address. They are ordered by their place on the PCI bus. */
static void find_devices(void)
{
	struct ibv_device **list;
	struct ifaddrs *all, *item;
	int count = 0, place, found;

	if (is_set("NCCL_IB_DISABLE"))
		return;
	list = ibv_get_device_list(&count);
	if (!list || getifaddrs(&all))
		return;
	for (place = 0; place < count && device_count < MOST_DEVICES; place++) {
		struct device *device = &devices[device_count];
		struct ibv_port_attr port;
		struct ibv_context *context;
		char link[600];

		if (!is_named(ibv_get_device_name(list[place])) || !(context = ibv_open_device(list[place])))
			continue;
		found = !ibv_query_port(context, 1, &port) && port.state == IBV_PORT_ACTIVE;
		ibv_close_device(context);
		if (!found)
			continue;
		snprintf(device->name, sizeof(device->name), "%s", ibv_get_device_name(list[place]));
		snprintf(link, sizeof(link), "%s/device", list[place]->ibdev_path);
		if (!realpath(link, device->path))
			device->path[0] = 0;
		device_count++;
	}
	ibv_free_device_list(list);
	for (item = all; item; item = item->ifa_next) {
		struct sockaddr_in at;
		struct rdma_cm_id *id;

		if (!item->ifa_addr || item->ifa_addr->sa_family != AF_INET || (item->ifa_flags & IFF_LOOPBACK) || !strcmp(item->ifa_name, oob))
			continue;
		at = *(struct sockaddr_in *)item->ifa_addr;
		at.sin_port = 0;
		if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
			continue;
		found = !rdma_bind_addr(id, (struct sockaddr *)&at) && id->verbs;
		for (place = 0; found && place < device_count; place++)
			if (!strcmp(devices[place].name, ibv_get_device_name(id->verbs->device))) {
				devices[place].ip = at.sin_addr;
				break;
			}
		rdma_destroy_id(id);
	}
	freeifaddrs(all);
	for (place = found = 0; place < device_count; place++)
		if (devices[place].ip.s_addr)
			devices[found++] = devices[place];
	device_count = found;
	qsort(devices, device_count, sizeof(*devices), by_place);
}

static void tell_devices(void)
{
	char text[2048];
	int place, end = 0;

	for (place = 0; place < device_count; place++)
		end += snprintf(text + end, sizeof(text) - end, " [%d]%s:1/IB", place, devices[place].name);
	text[end] = 0;
	if (!is_set("NCCL_IB_DISABLE")) {
		if (!device_count)
			say("NET", "NET/IB : No device found.");
		say("NET", "NET/IB : Using%s [RO]; OOB %s:%s<0>", text, oob, inet_ntoa(oob_address));
	}
	if (!device_count) {
		say("NET", "Failed to initialize NET plugin IB");
		say("NET", "NET/Socket : Using [0]%s:%s<0>", oob, inet_ntoa(oob_address));
	}
	say("NET", "Initialized NET plugin %s", device_count ? "IB" : "Socket");
	for (place = 0; place < device_count; place++)
		say("NET", "NET/IB : GPU Direct RDMA Disabled for HCA %d '%s'", place, devices[place].name);
	say("INIT", "Assigned NET plugin %s to comm", device_count ? "IB" : "Socket");
	say("INIT", "Using network %s", device_count ? "IB" : "Socket");
}

/* ---- the ends of a connection ---- */

static void post_receive(struct pipe *pipe, int slot, size_t bytes)
{
	struct ibv_sge part = { (uintptr_t)pipe->memory + (size_t)slot * SLOT_BYTES, bytes, pipe->mr->lkey };
	struct ibv_recv_wr work = { .wr_id = slot, .sg_list = &part, .num_sge = 1 }, *bad;

	if (ibv_post_recv(pipe->id->qp, &work, &bad))
		fail("Call to ibv_post_recv failed with error %s", strerror(errno));
}

static void post_send(struct pipe *pipe, int slot, size_t bytes)
{
	struct ibv_sge part = { (uintptr_t)pipe->memory + (size_t)slot * SLOT_BYTES, bytes, pipe->mr->lkey };
	struct ibv_send_wr work = { .wr_id = slot, .sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (ibv_post_send(pipe->id->qp, &work, &bad))
		fail("Call to ibv_post_send failed with error %s", strerror(errno));
}

/* Queue pair and memory of an end; what it receives before anything was sent has room. */
static void furnish(struct pipe *pipe)
{
	struct ibv_qp_init_attr wanted = {
		.cap = { .max_send_wr = 2 * SLOTS, .max_recv_wr = 2 * SLOTS, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	int slot;

	if (rdma_create_qp(pipe->id, NULL, &wanted))
		fail("Call to rdma_create_qp failed with error %s", strerror(errno));
	if (posix_memalign((void **)&pipe->memory, 4096, (SLOTS + 1) * SLOT_BYTES))
		fail("no memory");
	pipe->mr = ibv_reg_mr(pipe->id->pd, pipe->memory, (SLOTS + 1) * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!pipe->mr)
		fail("Call to ibv_reg_mr failed with error %s", strerror(errno));
	for (slot = 0; slot < SLOTS; slot++) {
		if (pipe->out) {
			pipe->free[slot] = slot;
			post_receive(pipe, SLOTS, 1);
		} else {
			post_receive(pipe, slot, SLOT_BYTES);
		}
	}
	for (; pipe->out && slot < 2 * SLOTS; slot++)
		post_receive(pipe, SLOTS, 1);
	pipe->free_count = pipe->credits = SLOTS;
}

static void check(struct pipe *pipe, const struct ibv_wc *done)
{
	struct sockaddr_in *peer = (struct sockaddr_in *)rdma_get_peer_addr(pipe->id);

	if (done->status == IBV_WC_SUCCESS)
		return;
	fail("NET/IB: Got completion from peer %s<%d> with status=%d opcode=%d len=%d vendor err %u (%s) hca %s", inet_ntoa(peer->sin_addr),
	     ntohs(peer->sin_port), done->status, done->opcode, done->byte_len, done->vendor_err, pipe->out ? "Send" : "Recv",
	     devices[pipe->device].name);
}

static size_t push_verbs(struct pipe *pipe, const char *bytes, size_t count)
{
	struct ibv_wc done;
	int slot;

	while (ibv_poll_cq(pipe->id->send_cq, 1, &done) > 0) {
		check(pipe, &done);
		pipe->free[pipe->free_count++] = done.wr_id;
	}
	while (ibv_poll_cq(pipe->id->recv_cq, 1, &done) > 0) {
		check(pipe, &done);
		pipe->credits++;
		post_receive(pipe, SLOTS, 1);
	}
	if (!count || !pipe->free_count || !pipe->credits)
		return 0;
	slot = pipe->free[--pipe->free_count];
	pipe->credits--;
	count = count < SLOT_BYTES ? count : SLOT_BYTES;
	memcpy(pipe->memory + (size_t)slot * SLOT_BYTES, bytes, count);
	post_send(pipe, slot, count);
	return count;
}

static size_t pull_verbs(struct pipe *pipe, char *bytes, size_t count)
{
	struct ibv_wc done;
	int slot;

	while (ibv_poll_cq(pipe->id->send_cq, 1, &done) > 0)
		check(pipe, &done);
	while (ibv_poll_cq(pipe->id->recv_cq, 1, &done) > 0) {
		check(pipe, &done);
		slot = (pipe->first + pipe->count++) % SLOTS;
		pipe->filled[slot] = done.wr_id;
		pipe->length[slot] = done.byte_len;
	}
	if (!count || !pipe->count)
		return 0;
	slot = pipe->filled[pipe->first];
	if (count > (size_t)(pipe->length[pipe->first] - pipe->offset))
		count = pipe->length[pipe->first] - pipe->offset;
	memcpy(bytes, pipe->memory + (size_t)slot * SLOT_BYTES + pipe->offset, count);
	pipe->offset += count;
	if (pipe->offset == pipe->length[pipe->first]) {
		pipe->first = (pipe->first + 1) % SLOTS;
		pipe->count--;
		pipe->offset = 0;
		post_receive(pipe, slot, SLOT_BYTES);
		post_send(pipe, SLOTS, 1);
	}
	return count;
}

static size_t push(struct pipe *pipe, const char *bytes, size_t count)
{
	if (pipe->way == VERBS)
		return push_verbs(pipe, bytes, count);
	if (!count)
		return 0;
	if (pipe->way == SHARED) {
		struct shared *shared = pipe->shared;
		size_t at = shared->written % SHARED_BYTES, room = SHARED_BYTES - (shared->written - shared->read);

		count = count < room ? count : room;
		count = count < SHARED_BYTES - at ? count : SHARED_BYTES - at;
		memcpy(shared->bytes + at, bytes, count);
		__sync_synchronize();
		shared->written += count;
		return count;
	}
	ssize_t sent = send(pipe->socket, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		fail("Call to send to %s failed : %s", "another rank", strerror(errno));
	return sent < 0 ? 0 : sent;
}

static size_t pull(struct pipe *pipe, char *bytes, size_t count)
{
	if (pipe->way == VERBS)
		return pull_verbs(pipe, bytes, count);
	if (!count)
		return 0;
	if (pipe->way == SHARED) {
		struct shared *shared = pipe->shared;
		size_t at = shared->read % SHARED_BYTES, there = shared->written - shared->read;

		count = count < there ? count : there;
		count = count < SHARED_BYTES - at ? count : SHARED_BYTES - at;
		__sync_synchronize();
		memcpy(bytes, shared->bytes + at, count);
		__sync_synchronize();
		shared->read += count;
		return count;
	}
	ssize_t came = recv(pipe->socket, bytes, count, MSG_DONTWAIT);

	if (!came)
		fail("Connection closed by remote peer of %s", host);
	if (came < 0 && errno != EAGAIN && errno != EINTR)
		fail("Call to recv from another rank failed : %s", strerror(errno));
	return came < 0 ? 0 : came;
}

/* ---- how the ends meet ---- */

static void shared_name(char *name, uint64_t identity, int channel, int to)
{
	sprintf(name, "/nccl-%016llx-%d-%d", (unsigned long long)identity, channel, to);
}

static void open_shared(struct pipe *pipe, uint64_t identity, int channel, int to, bool make)
{
	char name[128];
	int file;

	shared_name(name, identity, channel, to);
	file = shm_open(name, O_RDWR | (make ? O_CREAT | O_EXCL : 0), 0600);
	if (file < 0 || (make && ftruncate(file, sizeof(struct shared))))
		fail("Error: failed to extend %s to %zu bytes, shared memory segment", name, sizeof(struct shared));
	pipe->shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (pipe->shared == MAP_FAILED)
		fail("shared memory segment %s: Could not map %zu size", name, sizeof(struct shared));
	close(file);
}

static void listen_on(struct pipe *pipe, struct address *address)
{
	socklen_t length = sizeof(address->at);

	memset(&address->at, 0, sizeof(address->at));
	address->at.sin_family = AF_INET;
	if (pipe->way == VERBS) {
		address->at.sin_addr = devices[pipe->device].ip;
		if (rdma_create_id(NULL, &pipe->listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(pipe->listener, (struct sockaddr *)&address->at) ||
		    rdma_listen(pipe->listener, 4))
			fail("Call to rdma_listen failed with error %s", strerror(errno));
		address->at.sin_port = rdma_get_src_port(pipe->listener);
		return;
	}
	address->at.sin_addr = oob_address;
	pipe->socket = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(pipe->socket, (struct sockaddr *)&address->at, sizeof(address->at)) || listen(pipe->socket, 4) ||
	    getsockname(pipe->socket, (struct sockaddr *)&address->at, &length))
		fail("Call to listen failed : %s", strerror(errno));
}

static void *take(void *given)
{
	struct pipe *pipe = given;

	if (pipe->way == VERBS) {
		struct rdma_conn_param parameters = { .responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7 };

		if (rdma_get_request(pipe->listener, &pipe->id))
			fail("Call to rdma_get_request failed with error %s", strerror(errno));
		furnish(pipe);
		if (rdma_accept(pipe->id, &parameters))
			fail("Call to rdma_accept failed with error %s", strerror(errno));
	} else {
		int taken = accept(pipe->socket, NULL, NULL);

		if (taken < 0)
			fail("Call to accept failed : %s", strerror(errno));
		close(pipe->socket);
		pipe->socket = taken;
	}
	return NULL;
}

static void reach(struct pipe *pipe, struct address *other)
{
	if (pipe->way == VERBS) {
		struct rdma_conn_param parameters = { .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7 };
		struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = devices[pipe->device].ip };

		if (rdma_create_id(NULL, &pipe->id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(pipe->id, (struct sockaddr *)&own, (struct sockaddr *)&other->at, RESOLVE_MILLISECONDS) ||
		    rdma_resolve_route(pipe->id, RESOLVE_MILLISECONDS))
			fail("NET/IB : %s: connect to %s failed : %s", devices[pipe->device].name, inet_ntoa(other->at.sin_addr), strerror(errno));
		furnish(pipe);
		if (rdma_connect(pipe->id, &parameters))
			fail("NET/IB : %s: connect to %s failed : %s", devices[pipe->device].name, inet_ntoa(other->at.sin_addr), strerror(errno));
		return;
	}
	pipe->socket = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(pipe->socket, (struct sockaddr *)&other->at, sizeof(other->at)))
		fail("Call to connect to %s failed : %s", inet_ntoa(other->at.sin_addr), strerror(errno));
}

/* ---- rings ---- */

static bool same_node(int one, int other)
{
	return !strcmp(members[one].host, members[other].host);
}

static enum way way_between(int one, int other)
{
	if (same_node(one, other) && !is_set("NCCL_SHM_DISABLE"))
		return SHARED;
	return members[one].devices && members[other].devices ? VERBS : TCP;
}

/* A channel for each HCA that is beside a GPU of this communicator: GPU n is beside HCA n, or n modulo their number. */
static int count_channels(int *hcas)
{
	int most = 0, place, count = 0, number;

	for (place = 0; place < size; place++)
		most = members[place].devices > most ? members[place].devices : most;
	for (number = 0; number < (most ? most : 1); number++)
		for (place = 0; place < size; place++)
			if (same_node(place, 0) && (!most || members[place].physical % most == number)) {
				hcas[count++] = number;
				break;
			}
	return count;
}

/* Node after node, and on each node first the GPU behind the one that is beside the HCA, so that that one is the last and the next node the first to hear. */
static void order(struct channel *channel, int hca)
{
	int place, other, end = 0;

	for (place = 0; place < size; place++) {
		int own[MOST_RANKS], count = 0, beside = 0, turn;

		for (other = 0; other < place && !same_node(place, other); other++)
			;
		if (other < place)
			continue;
		for (other = place; other < size; other++)
			if (same_node(place, other)) {
				if (members[other].devices && members[other].physical % members[other].devices == hca)
					beside = count;
				own[count++] = other;
			}
		for (turn = 0; turn < count; turn++)
			channel->ring[end++] = own[(beside + 1 + turn) % count];
	}
	for (place = 0; place < size; place++)
		if (channel->ring[place] == rank)
			channel->place = place;
}

static int neighbour(const struct channel *channel, int step)
{
	return channel->ring[(channel->place + size + step) % size];
}

static void tell_pipe(int number, int from, int to, const struct pipe *pipe)
{
	char between[64];

	sprintf(between, "%d[%d] -> %d[%d]", from, members[from].physical, to, members[to].physical);
	if (pipe->way == SHARED && pipe->out)
		say("INIT", "Channel %02d : %s via SHM/direct/direct", number, between);
	else if (pipe->way != SHARED)
		say("INIT", "Channel %02d/0 : %s [%s] via NET/%s/%d", number, between, pipe->out ? "send" : "receive",
		    pipe->way == VERBS ? "IB" : "Socket", pipe->way == VERBS ? pipe->device : 0);
}

static void connect_rings(uint64_t identity)
{
	struct address own[MOST_DEVICES], *all;
	int hcas[MOST_DEVICES], number;

	channel_count = count_channels(hcas);
	memset(own, 0, sizeof(own));
	for (number = 0; number < channel_count; number++) {
		struct channel *channel = &channels[number];
		int before, after;

		order(channel, hcas[number]);
		before = neighbour(channel, -1);
		after = neighbour(channel, 1);
		channel->in.device = channel->out.device = device_count ? hcas[number] % device_count : 0;
		channel->out.out = true;
		channel->in.way = way_between(before, rank);
		channel->out.way = way_between(rank, after);
		say("INIT", "Ring %02d : %d -> %d -> %d", number, before, rank, after);
		own[number].way = channel->in.way;
		if (channel->in.way == SHARED)
			open_shared(&channel->in, identity, number, rank, true);
		else
			listen_on(&channel->in, &own[number]);
	}
	say("INIT", "%d coll channels, 0 collnet channels, 0 nvls channels, 0 p2p channels, 0 p2p channels per peer", channel_count);
	all = calloc(size, sizeof(own));
	MPI_Allgather(own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE, group);
	for (number = 0; number < channel_count; number++)
		if (channels[number].in.way != SHARED)
			pthread_create(&channels[number].in.thread, NULL, take, &channels[number].in);
	for (number = 0; number < channel_count; number++) {
		struct channel *channel = &channels[number];
		int after = neighbour(channel, 1);

		if (channel->out.way == SHARED)
			open_shared(&channel->out, identity, number, after, false);
		else
			reach(&channel->out, &all[after * MOST_DEVICES + number]);
	}
	for (number = 0; number < channel_count; number++)
		if (channels[number].in.way != SHARED)
			pthread_join(channels[number].in.thread, NULL);
	free(all);
	MPI_Barrier(group);
	for (number = 0; number < channel_count; number++) {
		char name[128];

		if (channels[number].in.way == SHARED) {
			shared_name(name, identity, number, rank);
			shm_unlink(name);
		}
	}
}

static void tell_rings(void)
{
	int number;

	for (number = 0; number < channel_count; number++) {
		tell_pipe(number, neighbour(&channels[number], -1), rank, &channels[number].in);
		tell_pipe(number, rank, neighbour(&channels[number], 1), &channels[number].out);
	}
	say("INIT", "Connected all rings, use ring PXN 0 GDR 0");
}

/* ---- collectives ---- */

enum collective { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };

static const struct {
	const char *program, *name, *operation;
} COLLECTIVES[] = {
	{ "all_reduce_perf", "AllReduce", "sum" },
	{ "all_gather_perf", "AllGather", "none" },
	{ "reduce_scatter_perf", "ReduceScatter", "sum" },
};

/* The part of a channel of the piece that belongs to a place of its ring. */
static float *part(const struct channel *channel, float *all, size_t count, int place, size_t *bytes)
{
	size_t piece = (count + size - 1) / size, owner = channel->ring[((place % size) + size) % size];
	size_t begin = owner * piece < count ? owner * piece : count, end = begin + piece < count ? begin + piece : count;
	size_t number = channel - channels, least = begin + (end - begin) * number / channel_count;

	*bytes = (begin + (end - begin) * (number + 1) / channel_count - least) * sizeof(float);
	return all + least;
}

/* Go on with a channel; whether anything moved. */
static bool advance(struct channel *channel, float *all, size_t count, int reducing)
{
	bool reduces = channel->step < reducing;
	int back = reduces ? channel->step + 1 : channel->step - reducing;
	size_t to_send, to_receive, moved, number;
	float *from = part(channel, all, count, channel->place - back, &to_send);
	float *into = part(channel, all, count, channel->place - back - 1, &to_receive);

	moved = push(&channel->out, (char *)from + channel->sent, to_send - channel->sent);
	channel->sent += moved;
	number = pull(&channel->in, (reduces ? channel->scratch : (char *)into) + channel->received, to_receive - channel->received);
	channel->received += number;
	moved += number;
	if (channel->sent < to_send || channel->received < to_receive)
		return moved;
	if (reduces)
		for (number = 0; number < to_receive / sizeof(float); number++)
			into[number] += ((float *)channel->scratch)[number];
	channel->sent = channel->received = 0;
	channel->step++;
	return true;
}

static void run_rings(float *all, size_t count, bool reduce, bool gather)
{
	int reducing = reduce ? size - 1 : 0, number, left = channel_count, idle = 0;
	const struct timespec moment = { 0, IDLE_NANOSECONDS };

	for (number = 0; number < channel_count; number++) {
		channels[number].step = 0;
		channels[number].steps = reducing + (gather ? size - 1 : 0);
	}
	while (left && size > 1) {
		bool moved = false;

		for (number = left = 0; number < channel_count; number++) {
			if (channels[number].step >= channels[number].steps) {
				/* who is done still takes the words of credit */
				push(&channels[number].out, NULL, 0);
				continue;
			}
			moved = advance(&channels[number], all, count, reducing) || moved;
			left++;
		}
		idle = moved ? 0 : idle + 1;
		if (idle > SPINS)
			nanosleep(&moment, NULL);
		else if (idle)
			sched_yield();
	}
}

static float value(int of_rank, size_t place)
{
	return (float)((place * 7 + of_rank * 3) % 16);
}

/* One collective over count floats: what all ranks have together. */
static void collect(enum collective collective, const float *from, float *into, float *work, size_t count)
{
	size_t piece = count / size;

	switch (collective) {
	case ALL_REDUCE:
		if (from != into)
			memcpy(into, from, count * sizeof(float));
		run_rings(into, count, true, true);
		break;
	case ALL_GATHER:
		if (from != into + rank * piece)
			memcpy(into + rank * piece, from, piece * sizeof(float));
		run_rings(into, count, false, true);
		break;
	case REDUCE_SCATTER:
		memcpy(work, from, count * sizeof(float));
		run_rings(work, count, true, false);
		memcpy(into, work + rank * piece, piece * sizeof(float));
		break;
	}
}

static long count_wrong(enum collective collective, const float *into, size_t count)
{
	size_t piece = count / size, place;
	long wrong = 0;
	int other;

	for (place = 0; place < (collective == REDUCE_SCATTER ? piece : count); place++) {
		float wanted = 0;

		if (collective == ALL_GATHER)
			wanted = value(place / piece, place % piece);
		else
			for (other = 0; other < size; other++)
				wanted += value(other, collective == ALL_REDUCE ? place : rank * piece + place);
		wrong += into[place] != wanted;
	}
	return wrong;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* As nccl-tests writes a number into so many characters. */
static const char *figure(double number, int width, char *text)
{
	int power = 0;
	double least;

	for (least = 1; number >= least; least *= 10)
		power++;
	sprintf(text, power < width - 2 ? "%*.2f" : power < width - 1 ? "%*.1f" : "%*.0f", width, number);
	return text;
}

struct options {
	size_t least, most, factor, bytes;
	int iterations, warmups, mean, checks;
};

static size_t bytes_of(const char *text)
{
	char *end;
	size_t number = strtoull(text, &end, 10);

	return number << (*end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : *end == 'G' || *end == 'g' ? 30 : 0);
}

static struct options read_options(int argc, char **argv)
{
	struct options found = { .least = 32 << 20, .most = 32 << 20, .bytes = 1 << 20, .iterations = 20, .warmups = 1, .mean = 1, .checks = 1 };
	int option;

	while ((option = getopt(argc, argv, "b:e:f:i:g:t:n:w:a:c:T:")) != -1) {
		switch (option) {
		case 'b': found.least = bytes_of(optarg); break;
		case 'e': found.most = bytes_of(optarg); break;
		case 'f': found.factor = strtoull(optarg, NULL, 10); break;
		case 'i': found.bytes = bytes_of(optarg); break;
		case 'n': found.iterations = atoi(optarg); break;
		case 'w': found.warmups = atoi(optarg); break;
		case 'a': found.mean = atoi(optarg); break;
		case 'c': found.checks = atoi(optarg); break;
		case 'T': seconds_at_most = atoi(optarg); break;
		case 't':
		case 'g':
			if (atoi(optarg) == 1)
				break;
			/* fall through */
		default:
			printf("%s: the stand-in has one GPU in a process, and no option -%c\n", argv[0], option);
			exit(1);
		}
	}
	if (found.least < 4 || found.most < found.least || found.iterations < 1) {
		printf("invalid sizes for 'minbytes' and 'maxbytes'\n");
		exit(1);
	}
	return found;
}

/* The time of one collective over all ranks, in seconds: -a says whose. */
static double all_times(double own, int mean)
{
	double all = own;

	if (mean)
		MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, mean == 2 ? MPI_MIN : mean == 3 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
	return mean == 1 ? all / world_size : all;
}

static void tell_choice(enum collective collective, size_t bytes)
{
	if (size > 1)
		say("TUNING", "%s: %zu Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..%d}", COLLECTIVES[collective].name,
		    collective == ALL_REDUCE ? bytes : bytes / size, channel_count - 1);
}

static void fill(float *from, enum collective collective, size_t count)
{
	size_t place;

	for (place = 0; place < (collective == ALL_GATHER ? count / size : count); place++)
		from[place] = value(rank, place);
}

static void run_test(enum collective collective, const struct options *options)
{
	double factor = collective == ALL_REDUCE ? 2.0 * (size - 1) / size : (double)(size - 1) / size, sum = 0;
	float *from = malloc(options->most), *into = malloc(options->most), *work = malloc(options->most);
	long all_wrong = 0;
	int figures = 0, number, place;
	size_t bytes;

	if (!from || !into || !work)
		fail("no memory for %zu bytes", options->most);
	for (number = 0; number < channel_count; number++)
		channels[number].scratch = malloc(options->most / size + 2 * sizeof(float));
	if (!world_rank) {
		printf("#\n#                                                              out-of-place                       in-place          \n");
		printf("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n");
		printf("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n");
	}
	for (number = 0; number < 2 * options->warmups; number++) {
		size_t count = (number < options->warmups ? options->most : options->least) / sizeof(float) / size * size;

		if (number % options->warmups == 0)
			tell_choice(collective, count * sizeof(float));
		fill(from, collective, count);
		collect(collective, from, into, work, count);
	}
	for (bytes = options->least; bytes <= options->most; bytes = options->factor > 1 ? bytes * options->factor : bytes + options->bytes) {
		/* as nccl-tests does, so that each rank has as much as any other */
		size_t count = collective == ALL_REDUCE ? bytes / sizeof(float) : bytes / sizeof(float) / size * size;
		size_t shown = count * sizeof(float);

		if (!world_rank)
			printf("%12zu  %12zu  %8s  %6s  %6d", shown, collective == ALL_REDUCE ? count : count / size, "float", COLLECTIVES[collective].operation, -1);
		tell_choice(collective, shown);
		for (place = 0; place < 2; place++) {
			float *given = place == 0 ? from : collective == ALL_GATHER ? into + rank * (count / size) : collective == REDUCE_SCATTER ? from : into;
			float *taken = place == 0 || collective != REDUCE_SCATTER ? into : from + rank * (count / size);
			double begin, each;
			long wrong = 0, own;
			char words[3][32];

			fill(given, collective, count);
			MPI_Barrier(MPI_COMM_WORLD);
			begin = now();
			for (number = 0; number < options->iterations; number++)
				collect(collective, given, taken, work, count);
			each = all_times((now() - begin) / options->iterations, options->mean);
			if (options->checks) {
				fill(given, collective, count);
				MPI_Barrier(MPI_COMM_WORLD);
				collect(collective, given, taken, work, count);
				own = count_wrong(collective, taken, count);
				MPI_Allreduce(&own, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
			}
			all_wrong += wrong;
			sum += shown / each / 1e9 * factor;
			figures++;
			if (world_rank)
				continue;
			printf("  %s  %s  %s", figure(each * 1e6, 7, words[0]), figure(shown / each / 1e9, 6, words[1]), figure(shown / each / 1e9 * factor, 6, words[2]));
			if (options->checks)
				printf("  %6ld", wrong);
			else
				printf("     N/A");
		}
		if (!world_rank) {
			printf("\n");
			fflush(stdout);
		}
	}
	if (!world_rank) {
		printf("# Out of bounds values : %ld %s\n", all_wrong, all_wrong ? "FAILED" : "OK");
		printf("# Avg bus bandwidth    : %g \n", sum / figures);
	}
	if (all_wrong)
		exit(1);
}

static void tell_environment(void)
{
	static const char *const HEEDED[] = { "NCCL_ALGO", "NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_SHM_DISABLE", "NCCL_SOCKET_IFNAME" };
	size_t place;

	for (place = 0; place < sizeof(HEEDED) / sizeof(*HEEDED); place++)
		if (setting(HEEDED[place]))
			say("ENV", "%s set by environment to %s.", HEEDED[place], setting(HEEDED[place]));
}

/* Who is on this node, by host names; the GPU of each rank follows from that, and from CUDA_VISIBLE_DEVICES. */
static struct member *meet(MPI_Comm together, int number)
{
	struct member own = { .pid = pid, .gpu = gpu, .physical = physical_gpu, .world = world_rank, .devices = device_count }, *all = calloc(number, sizeof(own));

	memcpy(own.host, host, sizeof(host));
	MPI_Allgather(&own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE, together);
	return all;
}

static void choose_gpu(void)
{
	const char *visible = setting("CUDA_VISIBLE_DEVICES");
	struct member *all = meet(MPI_COMM_WORLD, world_size);
	int place, turn;

	for (place = 0; place < world_rank; place++)
		gpu += !strcmp(all[place].host, host);
	free(all);
	physical_gpu = visible ? -1 : gpu;
	for (turn = 0; visible && turn <= gpu; turn++) {
		physical_gpu = atoi(visible);
		visible = strchr(visible, ',');
		if (!visible++ && turn < gpu) {
			physical_gpu = -1;
			break;
		}
	}
	if (physical_gpu < 0) {
		printf("Invalid number of GPUs: rank %d of %s has none\n", gpu, host);
		fflush(stdout);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* The communicator: all ranks, or by NCCL_TESTS_SPLIT="MOD n" one in n. */
static void split(void)
{
	const char *wanted = setting("NCCL_TESTS_SPLIT");
	int number;

	if (wanted) {
		if (sscanf(wanted, "MOD %d", &number) != 1 || number < 1)
			fail("NCCL_TESTS_SPLIT=%s: the stand-in knows MOD alone", wanted);
		color = world_rank % number;
	}
	MPI_Comm_split(MPI_COMM_WORLD, color, world_rank, &group);
	MPI_Comm_rank(group, &rank);
	MPI_Comm_size(group, &size);
	if (size > MOST_RANKS)
		fail("%d ranks are more than %d", size, MOST_RANKS);
}

static void count_nodes(void)
{
	int place, other;

	for (place = 0; place < size; place++) {
		for (other = 0; other < place && !same_node(place, other); other++)
			;
		nodes += other == place;
		local_size += same_node(place, rank);
		local_rank += place < rank && same_node(place, rank);
	}
}

static void list_ranks(const char *program, const struct options *options)
{
	struct { struct member member; int color; } own, *all = calloc(world_size, sizeof(own));
	int place;

	own.member = members[rank];
	own.color = color;
	MPI_Gather(&own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (!world_rank) {
		printf("# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n");
		printf("# (a stand-in for it: no GPU and no NCCL, but rings over verbs, TCP and shared memory; linerate.rdma, lab/collectives)\n");
		printf("# Collective test starting: %s\n", program);
		printf("# nThread 1 nGpus 1 minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d iters: %d agg iters: 1 validation: %d graph: 0 unalign: 0\n",
		       options->least, options->most, options->factor > 1 ? options->factor : options->bytes, options->factor > 1 ? "factor" : "bytes",
		       options->warmups, options->iterations, options->checks);
		printf("#\n# Using devices\n");
		for (place = 0; place < world_size; place++)
			printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [0000:%02x:00] none (stand-in)\n", place, all[place].color, all[place].member.pid,
			       all[place].member.host, all[place].member.gpu, all[place].member.physical + 1);
		fflush(stdout);
	}
	free(all);
}

int main(int argc, char **argv)
{
	const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	enum collective collective = ALL_REDUCE;
	struct options options;
	uint64_t identity = 0;
	FILE *random;

	while (strcmp(program, COLLECTIVES[collective].program))
		if (++collective > REDUCE_SCATTER) {
			printf("%s: the stand-in knows all_reduce_perf, all_gather_perf and reduce_scatter_perf\n", program);
			return 1;
		}
	options = read_options(argc, argv);
	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = 0;
	pid = getpid();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	signal(SIGALRM, out_of_time);
	alarm(seconds_at_most);
	choose_gpu();
	open_log();
	say("INIT", "NCCL version 2.28.9+stand.in");
	tell_environment();
	if (setting("NCCL_ALGO") && strcasecmp(setting("NCCL_ALGO"), "Ring"))
		fail("NCCL_ALGO=%s: the stand-in has rings alone", setting("NCCL_ALGO"));
	find_oob();
	say("INIT", "Bootstrap: Using %s:%s<0>", oob, inet_ntoa(oob_address));
	find_devices();
	tell_devices();
	split();
	members = meet(group, size);
	count_nodes();
	list_ranks(program, &options);
	if (!rank && (random = fopen("/dev/urandom", "r"))) {
		if (fread(&identity, sizeof(identity), 1, random) != 1)
			identity = pid;
		fclose(random);
	}
	MPI_Bcast(&identity, sizeof(identity), MPI_BYTE, 0, group);
	const char *form = "ncclCommInitRank comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0x%llx - Init %s";

	say("INIT", form, (void *)&group, rank, size, gpu, physical_gpu, (physical_gpu + 1) << 4, (unsigned long long)identity, "START");
	say("INIT", "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL 0", (void *)&group, rank, size, nodes, local_size, local_rank);
	if (size > 1) {
		connect_rings(identity);
	} else {
		channel_count = 0;
		say("INIT", "0 coll channels, 0 collnet channels, 0 nvls channels, 0 p2p channels, 0 p2p channels per peer");
	}
	say("INIT", form, (void *)&group, rank, size, gpu, physical_gpu, (physical_gpu + 1) << 4, (unsigned long long)identity, "COMPLETE");
	if (size > 1)
		tell_rings();
	run_test(collective, &options);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!world_rank) {
		printf("#\n# Collective test concluded: %s\n#\n", program);
		fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}
