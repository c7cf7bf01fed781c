/* SPDX-License-Identifier: Apache-2.0 */
/* grt_session_set_weights: a new version of the weights that callers may replace. */
#include "src/base/structs.h"
#include "src/exec/device_value.h"
#include "src/session/device_memory.h"
#include "src/session/session.h"

#include <stdlib.h>
#include <string.h>

static grt_status find_weight(const grt_session *session, const char *name, int32_t *out_input)
{
    const grt_plan_body *body = &session->model->plan->bodies[0];
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        if (strcmp(v->name, name) != 0)
            continue;
        *out_input = i;
        return v->weight >= 0
                   ? GRT_OK
                   : grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                              "grt_session_set_weights: '%s' is an input without default, no weight", name);
    }
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                    "grt_session_set_weights: '%s' is no weight that can be replaced: weights are folded, "
                    "fused and packed when a "
                    "model is compiled, unless grt_compile_options.keep_weights (graphc optimize "
                    "--keep-weights) names them",
                    name);
}

static grt_status check_new_weight(const grt_session *session, const char *name, int32_t input,
                                   const grt_tensor *tensor)
{
    const grt_plan *plan = session->model->plan;
    const grt_tensor *old = &plan->weights[plan->bodies[0].values[plan->bodies[0].inputs[input]].weight];
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    GRT_TRY(grt_reserved_check(tensor->reserved, sizeof tensor->reserved, "grt_tensor"));
    if (tensor->rank < 0 || tensor->rank > GRT_MAX_RANK || !grt_tensor_same_type(tensor, old))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_set_weights: '%s' must be %s, found %s",
                        name, grt_tensor_text(old, a), grt_tensor_text(tensor, b));
    if (tensor->dtype == GRT_DTYPE_STRING || (grt_tensor_bytes(tensor) && !tensor->data))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_set_weights: '%s' has %s", name,
                        tensor->data ? "strings" : "no data");
    if (tensor->memory == GRT_MEMORY_DEVICE &&
        (!session->on_device || tensor->device != session->device->index))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_session_set_weights: '%s' is in memory of device %d, the session on %s", name,
                        (int)tensor->device, session->name);
    return GRT_OK;
}

static grt_status set_one(const grt_session *session, const char *name, const grt_tensor *tensor,
                          grt_weights_version *made)
{
    int32_t input;
    if (!name)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_set_weights: a name is NULL");
    GRT_TRY(find_weight(session, name, &input));
    GRT_TRY(check_new_weight(session, name, input, tensor));
    grt_value *value = &made->values[input];
    GRT_TRY(grt_device_value_alloc(session->device, NULL, value, tensor->dtype, tensor->rank, tensor->dims));
    return grt_device_move(session->device, &value->t, tensor);
}

/* What this call does not name stays as it is. */
static grt_status begin_version(const grt_kept_weights *kept, int32_t n, grt_weights_version **out_made)
{
    grt_weights_version *made = calloc(1, sizeof *made);
    if (!made)
        return grt_fail_memory(sizeof *made);
    atomic_init(&made->refs, 1);
    made->n = n;
    made->values = calloc((size_t)n + 1, sizeof *made->values);
    grt_status status = made->values ? GRT_OK : grt_fail_memory((size_t)n * sizeof *made->values);
    for (int32_t i = 0; status == GRT_OK && kept->newest && i < n; i++)
        if (kept->newest->values[i].t.dtype)
            status = grt_value_share(&made->values[i], &kept->newest->values[i]);
    *out_made = made;
    return status;
}

/* Calls follow each other: none loses what another has set. */
static grt_status set_all(grt_session *session, const char *const *names, const grt_tensor *tensors, size_t n)
{
    grt_kept_weights *kept = &session->kept;
    grt_weights_version *made = NULL, *old = NULL;
    pthread_mutex_lock(&kept->lock);
    grt_status status = begin_version(kept, session->model->plan->bodies[0].n_inputs, &made);
    for (size_t i = 0; status == GRT_OK && i < n; i++)
        status = set_one(session, names[i], &tensors[i], made);
    if (status == GRT_OK) {
        old = kept->newest;
        kept->newest = made;
        atomic_fetch_add_explicit(&kept->number, 1, memory_order_release);
    }
    pthread_mutex_unlock(&kept->lock);
    grt_weights_version_give(status == GRT_OK ? old : made);
    return status;
}

grt_status grt_session_set_weights(grt_session *session, const char *const *names, const grt_tensor *tensors,
                                   size_t n)
{
    if (!session || (n && (!names || !tensors)))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_session_set_weights: session, names or tensors is NULL");
    return set_all(session, names, tensors, n);
}
