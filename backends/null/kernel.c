/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel.h. In a backend that computes there is a file of rows for each kind of op, and grt_kernel_find
 * picks the row that fits: see backends/cpu/ops/. */
#include "backends/null/kernel.h"

#include "backends/algos.h"

#include <stdlib.h>
#include <string.h>

/* Checks the preconditions of kernels. */
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
static void null_kernel_choose(grt_reshape *reshape, const char *key, size_t begin)
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
        null_kernel_choose(reshape, grt_text_get(&key), begin);
    grt_text_release(&key);
    return status;
}

static const grt_kernel_row any_op = {.domain = "", .op = "any", .run = run_nothing};
static const grt_kernel_row chosen_op = {.domain = "",
                                         .op = "any",
                                         .flags = GRT_KERNEL_TUNES | GRT_KERNEL_CHOOSES,
                                         .run = run_nothing,
                                         .reshape = reshape_chosen};

const grt_kernel_row *null_find_kernel(const grt_kernel_node *node, grt_text *why)
{
    (void)why;
    static const char *const heavy[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++)
        if (!strcmp(node->desc->op, heavy[i]))
            return &chosen_op;
    return &any_op;
}
