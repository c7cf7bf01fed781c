/* SPDX-License-Identifier: Apache-2.0 */
/* Packed keys and values of a head. */
#include "backends/cpu/attention_packed.h"

#include "backends/cpu/gemm.h"
#include "src/base/int64.h"

bool attention_packed_floats(int64_t total, int64_t size, int64_t v_size, size_t *out_keys,
                             size_t *out_values)
{
    return grt_gemm_packed_b_floats(size, total, out_keys) &&
           grt_gemm_packed_b_floats(total, v_size, out_values);
}

static void pack_range(attention_packed *packed, const attention_head *h, int64_t from, int64_t to)
{
    const int64_t rows = grt_min64(to, h->total) - from;
    if (rows <= 0)
        return;
    grt_gemm_pack_b(h->size, rows, h->k + from * h->k_row, h->k_row, true, packed->keys + from * h->size);
    grt_gemm_pack_b_rows(h->total, h->v_size, from, rows, h->v + from * h->v_row, h->v_row, packed->values);
}

void attention_pack(attention_packed *packed, const attention_head *head, int64_t from, int64_t to)
{
    to = (to + GRT_GEMM_PANEL - 1) / GRT_GEMM_PANEL * GRT_GEMM_PANEL;
    if (packed->id != head->id || from > packed->to || to < packed->from) {
        packed->id = head->id;
        packed->from = packed->to = from;
    }
    if (from < packed->from) {
        pack_range(packed, head, from, packed->from);
        packed->from = from;
    }
    if (to > packed->to) {
        pack_range(packed, head, packed->to, to);
        packed->to = to;
    }
}
