/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/activation.h"

#include "src/base/pointwise.h"

#include <string.h>

static const struct {
    const char *name;
    int32_t function;
} acts[] = {[GRT_ACT_NONE] = {"", -1},
#define X(kind, name, function) [GRT_ACT_##kind] = {name, PW_##function},
            GRT_ACTIVATIONS(X)
#undef X
};
enum { N_ACTS = sizeof acts / sizeof *acts };

bool grt_act_find(const char *name, size_t length, grt_act_kind *out)
{
    for (int i = 0; i < N_ACTS; i++)
        if (strlen(acts[i].name) == length && !memcmp(acts[i].name, name, length)) {
            *out = (grt_act_kind)i;
            return true;
        }
    return false;
}

int32_t grt_act_function(grt_act_kind kind)
{
    return acts[kind].function;
}

bool grt_act_read(const grt_op_desc *desc, grt_act *out, grt_text *why)
{
    const char *name = grt_attr_string(desc, "activation", "");
    *out = (grt_act){GRT_ACT_NONE, grt_attr_float(desc, "alpha", 0), grt_attr_float(desc, "beta", 0)};
    if (grt_act_find(name, strlen(name), &out->kind))
        return true;
    *out = (grt_act){GRT_ACT_NONE, 0, 0};
    if (why)
        grt_text_add(why, "there is no activation '%s' in an epilogue", name);
    return false;
}

const char *grt_act_name_of(int32_t function)
{
    for (int i = 1; i < N_ACTS; i++)
        if (acts[i].function == function)
            return acts[i].name;
    return NULL;
}
