/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/stays.h"

#include "src/base/checked.h"
#include "src/base/tensor.h"

/* One row is cut into ranges of it, which begin where kernels may read. */
static bool gives_ranges_now(const grt_op_call *call)
{
    const grt_tensor *whole = call->run.in[0];
    const int64_t axis = grt_axis(grt_attr_int(call->run.desc, "axis", 0), whole->rank);
    size_t at = 0;
    if (axis < 0 || grt_dims_product(whole->dims, 0, (int32_t)axis) != 1)
        return false;
    for (int32_t i = 0; i < call->run.n_out; i++) {
        const grt_tensor *part = call->run.out[i];
        if (!part || at % GRT_VALUE_ALIGNMENT || part->dtype != whole->dtype ||
            !grt_add_size(at, grt_tensor_bytes(part), &at))
            return false;
    }
    return at == grt_tensor_bytes(whole);
}

/* The op's trait, which sees the content of constants only. */
static bool stays_in_order(const grt_draft *draft, const grt_plan_step *step, const grt_op_call *call)
{
    enum { MOST = 8 };
    const grt_tensor *in[MOST], unknown = {.rank = -1};
    if (!call->op->stays || step->n_in > MOST || step->n_out != 1 ||
        call->run.out[0]->dtype != call->run.in[0]->dtype)
        return false;
    for (int32_t i = 0; i < step->n_in; i++)
        in[i] = i == 0 || step->in[i] < 0                                     ? call->run.in[i]
                : grt_place_is_constant(&draft->program->places[step->in[i]]) ? call->host_in[i]
                                                                              : &unknown;
    return call->op->stays(call->run.desc, in, step->n_in, call->run.out[0]);
}

bool grt_draft_stays(const grt_draft *draft, int32_t s)
{
    const grt_plan_step *step = &draft->program->body->steps[s];
    const grt_op_call *call = &draft->frame->calls[s];
    if (step->kind != GRT_STEP_KERNEL || draft->steps[s].host || !call->op || step->n_in < 1 ||
        step->in[0] < 0 || step->n_out < 1 || step->out[0] < 0 ||
        !grt_dtype_in(call->run.in[0]->dtype, GRT_SET_PLAIN))
        return false;
    return call->op->flags & OP_PARTS ? gives_ranges_now(call) : stays_in_order(draft, step, call);
}
