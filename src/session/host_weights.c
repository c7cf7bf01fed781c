/* SPDX-License-Identifier: Apache-2.0 */
#include "src/session/host_weights.h"

#include "src/target/pack.h"

#include <stdlib.h>
#include <string.h>

static void host_weights_release(grt_host_weights *w)
{
    free(w->tensors);
    free(w->unpacked);
    free(w);
}

static grt_status host_weights_make(const grt_plan *plan, const grt_backend *backend,
                                    grt_host_weights **out_weights)
{
    const size_t n = (size_t)plan->n_weights;
    grt_host_weights *w = calloc(1, sizeof *w);
    if (!w)
        return grt_fail_memory(sizeof *w);
    *w = (grt_host_weights){.backend = backend, .packed = !strcmp(backend->name, plan->target)};
    w->tensors = calloc(n + 1, sizeof *w->tensors);
    grt_status status = w->tensors ? GRT_OK : grt_fail_memory(n * sizeof *w->tensors);
    if (status == GRT_OK && n && w->packed)
        memcpy(w->tensors, plan->weights, n * sizeof *w->tensors);
    else if (status == GRT_OK && n)
        status = grt_plan_unpack(plan, w->tensors, &w->unpacked);
    if (status != GRT_OK) {
        host_weights_release(w);
        return status;
    }
    *out_weights = w;
    return GRT_OK;
}

grt_status grt_host_weights_take(grt_model *model, const grt_backend *backend,
                                 const grt_host_weights **out_weights)
{
    grt_status status = GRT_OK;
    pthread_mutex_lock(&model->lock);
    grt_host_weights *w = model->host_weights;
    while (w && w->backend != backend)
        w = w->next;
    if (!w && (status = host_weights_make(model->plan, backend, &w)) == GRT_OK) {
        w->next = model->host_weights;
        model->host_weights = w;
    }
    if (status == GRT_OK) {
        w->refs++;
        *out_weights = w;
    }
    pthread_mutex_unlock(&model->lock);
    return status;
}

void grt_host_weights_give(grt_model *model, const grt_host_weights *weights)
{
    if (!weights)
        return;
    pthread_mutex_lock(&model->lock);
    grt_host_weights **at = &model->host_weights;
    while (*at != weights)
        at = &(*at)->next;
    grt_host_weights *w = *at;
    if (--w->refs == 0) {
        *at = w->next;
        host_weights_release(w);
    }
    pthread_mutex_unlock(&model->lock);
}

size_t grt_host_weights_bytes(const grt_model *model, const grt_host_weights *weights, int32_t i)
{
    return weights->packed ? grt_plan_packing(model->plan, i).bytes
                           : grt_tensor_bytes(&model->plan->weights[i]);
}
