/* SPDX-License-Identifier: Apache-2.0 */
/* The null backend: executes nothing, checks everything. Outputs are zeros of the right shape.
 *
 * It is the skeleton for a new backend, and stands in for eight devices where a test wants many. Ops whose
 * output size depends on data are refused, since nothing is computed. */
#include "backends/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const grt_backend grt_backend_null;

enum { DEVICES = 8 };

static int32_t device_count(void)
{
    return DEVICES;
}

static void close_device(grt_device *device)
{
    free(device);
}

/* All eight are alike. */
enum { SM = 10 };

static void identify(grt_device *device, grt_text *key)
{
    (void)device;
    grt_text_add(key, "gpu=null;sm=%d;driver=1;", SM);
}

static const grt_device_api api = {.close = close_device, .identify = identify, .memory = &grt_host_memory};

static grt_status open_device(int32_t index, grt_device **out_device)
{
    if (index < 0 || index >= DEVICES)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device null:%d; null:0 to null:%d exist", index,
                        DEVICES - 1);
    grt_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    *device = (grt_device){.api = &api, .backend = &grt_backend_null, .index = index};
    *out_device = device;
    return GRT_OK;
}

/* ---- devices that are only described: they have a name and choose ---- */

typedef struct described {
    grt_device base;
    int32_t sm;
    char name[64];
} described;

static void identify_description(grt_device *device, grt_text *key)
{
    const described *d = (const described *)device;
    grt_text_add(key, "gpu=%s;sm=%d;driver=0;", d->name, d->sm);
}

static const grt_device_api description_api = {.close = close_device, .identify = identify_description};

static grt_status open_description(const grt_device_description *description, grt_device **out_device)
{
    described *d = calloc(1, sizeof *d);
    if (!d)
        return grt_fail_memory(sizeof *d);
    d->base = (grt_device){.api = &description_api, .backend = &grt_backend_null, .index = -1};
    d->sm = description->sm;
    snprintf(d->name, sizeof d->name, "%s", description->name);
    *out_device = &d->base;
    return GRT_OK;
}

static grt_status describe(grt_device *device, grt_text *name, int32_t *out_sm, grt_text *properties)
{
    (void)device;
    grt_text_add(name, "null");
    grt_text_add(properties, "{}");
    *out_sm = SM;
    return GRT_OK;
}

/* What a kernel may rely on, checked in its stead. */
static grt_status run_nothing(const grt_run *run)
{
    for (int32_t i = 0; i < run->n_in; i++)
        if (run->in[i] && !run->in[i]->data && grt_tensor_bytes(run->in[i]))
            return grt_fail_op(run->desc, GRT_STATUS_INTERNAL, "input %d has no memory", i);
    for (int32_t i = 0; i < run->n_out; i++) {
        if (!run->out[i])
            continue;
        size_t bytes = grt_tensor_bytes(run->out[i]);
        if (bytes == SIZE_MAX || (bytes && !run->out[i]->data))
            return grt_fail_op(run->desc, GRT_STATUS_INTERNAL, "output %d has no dims or no memory", i);
        if (bytes)
            memset(run->out[i]->data, 0, bytes);
    }
    return GRT_OK;
}

/* Ops for which a real backend would ask its library: what was chosen goes to the cache of algorithms and
 * comes from there, as a real choice does. The choice itself is a hash of what it is for, the device aside,
 * or one of the numbers behind it, so that a wrong one is noticed. */
enum { CANDIDATES = 3 };

/* `begin`: where the parts of the device end. */
static void choose(grt_reshape *reshape, const char *key, size_t begin)
{
    grt_algo_trial *trial = reshape->trial;
    uint64_t chosen = 0xcbf29ce484222325u, known;
    for (const char *c = key + begin; *c; c++)
        chosen = (chosen ^ (unsigned char)*c) * 0x100000001b3u;
    size_t size;
    bool good = false;
    for (void *data; !good && (data = grt_device_algo_find(reshape->device, trial, key, &size)); free(data)) {
        if (size == sizeof known) {
            memcpy(&known, data, sizeof known);
            good = known - chosen < CANDIDATES;
        }
        if (!good)
            grt_device_algo_reject(reshape->device, trial, key);
    }
    bool more = grt_algo_trial_lists(trial);
    for (uint64_t i = 0; more && i < CANDIDATES; i++) {
        known = chosen + i;
        more = grt_algo_trial_offer(trial, key, &known, sizeof known);
    }
    if (!good)
        grt_device_algo_store(reshape->device, trial, key, &chosen, sizeof chosen);
}

static grt_status reshape_chosen(grt_reshape *reshape)
{
    grt_text key = {0};
    grt_device_algo_key(reshape->device, reshape->desc->op, &key);
    const size_t begin = key.size;
    grt_text_add(&key, "nulls=1;");
    for (int32_t i = 0; i < reshape->n_in; i++) {
        char type[GRT_TYPE_TEXT_SIZE];
        if (reshape->in[i])
            grt_text_add(&key, "in%d=%s;", i, grt_tensor_text(reshape->in[i], type));
    }
    const grt_status status = key.failed ? grt_fail_memory(key.size) : GRT_OK;
    if (status == GRT_OK)
        choose(reshape, grt_text_get(&key), begin);
    grt_text_release(&key);
    return status;
}

static const grt_kernel_row any_op = {.domain = "", .op = "any", .run = run_nothing};
static const grt_kernel_row chosen_op = {.domain = "",
                                         .op = "any",
                                         .flags = GRT_KERNEL_TUNES | GRT_KERNEL_CHOOSES,
                                         .run = run_nothing,
                                         .reshape = reshape_chosen};

static const grt_kernel_row *find_kernel(const grt_kernel_node *node, grt_text *why)
{
    (void)why;
    static const char *const heavy[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++)
        if (!strcmp(node->desc->op, heavy[i]))
            return &chosen_op;
    return &any_op;
}

const grt_backend grt_backend_null = {
    .name = "null",
    .traits = {.imitates = true},
    .device_count = device_count,
    .device_open = open_device,
    .api = &api,
    .find_kernel = find_kernel,
    .describe = describe,
    .open_description = open_description,
    .description_api = &description_api,
};
