/* SPDX-License-Identifier: Apache-2.0 */
/* The expressions of pointwise.def as text, for code that is generated. No header here may define a macro
 * that they use. */
#include "src/base/pointwise.h"

const char *grt_pointwise_expression(int32_t opcode)
{
    static const char *const texts[PW_COUNT] = {
#define PW(name, since, arity, kind, n_params, p0, d0, p1, d1, expr) [PW_##name] = #expr,
#include "src/base/pointwise.def"
#undef PW
    };
    return texts[opcode];
}
