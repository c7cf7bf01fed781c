/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/prepared.h"

/* Of more, nothing is known. */
enum { MOST_INPUTS = 16 };

/* Defaults and state have the dims that they have. */
static grt_input_dims dims_of_input(const grt_request *r, size_t i, int64_t rows)
{
    const grt_value *value = r->by_value ? r->values[i] : NULL;
    const grt_tensor *t = value ? &value->t : &r->inputs[i];
    if (r->by_value ? !value : !t->dtype)
        return (grt_input_dims){.rank = -1};
    if (value && value->kind != GRT_KIND_TENSOR)
        return (grt_input_dims){.rank = 0, .rows = -1};
    return (grt_input_dims){.dims = t->dims, .rank = t->rank, .rows = rows};
}

bool grt_prepared_for(const grt_worker *w, const grt_request *r)
{
    const grt_batching *batching = &w->lane->batching;
    grt_input_dims inputs[MOST_INPUTS];
    if (!w->context || r->n_inputs > MOST_INPUTS)
        return true;
    const int64_t padded = r->rows ? grt_batching_padded(batching, r->rows) : -1;
    for (size_t i = 0; i < r->n_inputs; i++)
        inputs[i] = dims_of_input(r, i, padded > 0 && batching->has_rows[i] ? padded : -1);
    return grt_frame_cache_has(&w->context->frames, inputs, r->n_inputs);
}
