/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/evaluate.h"
#include "backends/backend.h"
#include "src/target/target.h"

#include <check.h>
#include <string.h>

static grt_attr no_attrs[1];

grt_status evaluate(const char *domain, const char *op, const grt_attr *attrs, size_t n_attrs,
                    const grt_tensor *in, int32_t n_in, grt_value *out)
{
    grt_target target = grt_target_of(&grt_backend_cpu);
    grt_op_desc desc = {domain, op, "node", attrs, n_attrs};
    const grt_tensor *pointers[8];
    for (int32_t i = 0; i < n_in; i++)
        pointers[i] = in[i].dtype ? &in[i] : NULL;
    memset(out, 0, sizeof *out);
    return target.evaluate(&target, &desc, pointers, n_in, out, 1, SIZE_MAX);
}

void evaluate_ok(const char *op, const grt_tensor *in, int32_t n_in, grt_value *out)
{
    grt_status status = evaluate("", op, no_attrs, 0, in, n_in, out);
    ck_assert_msg(status == GRT_OK, "%s: %s", op, grt_last_error());
}

grt_tensor vector_of(grt_dtype dtype, int64_t n, const void *data)
{
    return (grt_tensor){.dtype = dtype, .rank = 1, .dims = {n}, .data = (void *)data};
}
