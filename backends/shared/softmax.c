/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/softmax.h"

#include <stdlib.h>
#include <string.h>

grt_status grt_softmax_reshape(grt_reshape *r)
{
    grt_softmax *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_tensor *x = r->in[0];
    const int32_t axis = x->rank ? (int32_t)grt_axis(grt_attr_int(r->desc, "axis", -1), x->rank) : 0;
    s->log = !strcmp(r->desc->op, "LogSoftmax");
    s->outer = grt_dims_product(x->dims, 0, axis);
    s->size = x->rank ? x->dims[axis] : 1;
    s->inner = x->rank ? grt_dims_product(x->dims, axis + 1, x->rank) : 1;
    r->shape = s;
    return GRT_OK;
}
