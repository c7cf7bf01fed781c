/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of data movement share: content of small integer tensors, and turning old attributes into
 * inputs. */
#ifndef GRT_GRAPH_OPS_MOVES_H
#define GRT_GRAPH_OPS_MOVES_H

#include "graph/ir/ir.h"

/* Longest tensor whose content is followed element by element. */
enum { MOVES_MAX_ELEMS = 128 };

/* Content of input i if it is a list or a single number: int32 or int64, rank 0 or 1. */
static inline bool moves_elems(const infer *inf, int32_t i, const grt_dim **out_elems, int64_t *out_n)
{
    const ir_type *type = infer_has(inf, i) ? inf->in[i] : NULL;
    if (!type || type->rank < 0 || type->rank > 1 ||
        (type->dtype != GRT_DTYPE_INT64 && type->dtype != GRT_DTYPE_INT32))
        return false;
    return infer_elems(inf, i, out_elems, out_n);
}

/* State the content of output i, which infer_set has described before. */
static inline void moves_set_elems(infer *inf, int32_t i, const grt_dim *elems, int64_t n)
{
    ir_type *out = &inf->out[i];
    if (elems && n <= MOVES_MAX_ELEMS && (out->rank == 0 || out->rank == 1) &&
        (out->dtype == GRT_DTYPE_INT64 || out->dtype == GRT_DTYPE_INT32)) {
        out->elems = elems;
        out->n_elems = n;
    }
}

/* Length of the list that input i is, if known: then the rank of what it describes is known too. */
static inline bool moves_length(const infer *inf, int32_t i, int32_t *out_n)
{
    int64_t n;
    if (!infer_has(inf, i) || inf->in[i]->rank != 1 || !infer_const(inf, inf->in[i]->dims[0], &n) || n < 0 ||
        n > GRT_MAX_RANK)
        return false;
    *out_n = (int32_t)n;
    return true;
}

/* Output 0 has dims that only the run will tell; their number is the length of input i, if even that is
 * known. */
static inline void moves_set_fresh_by(infer *inf, grt_dtype dtype, int32_t i)
{
    int32_t n;
    if (moves_length(inf, i, &n))
        infer_set_fresh(inf, 0, dtype, n);
    else
        infer_set_unknown(inf, 0, dtype);
}

static inline grt_status moves_check_rank(const infer *inf, int64_t rank)
{
    if (rank > GRT_MAX_RANK)
        return infer_fail(inf, "the output would have rank %lld; at most %d is supported", (long long)rank,
                          GRT_MAX_RANK);
    return GRT_OK;
}

/* max(dim, 0), simplified where dim cannot be negative. */
grt_dim moves_clamp(grt_dims *dims, grt_dim dim);

/* A list of axes, from input i, or from 0..rank-1 if that is absent: *out_axes[rank] has which axes are
 * named. False in *out_known if the input's content is unknown. Axes named twice or out of range are
 * failures. */
grt_status moves_axes(const infer *inf, int32_t i, int32_t rank, bool *out_axes, int64_t *out_n,
                      bool *out_known);

/* A permutation names each of n axes once, counted from the front: passes and kernels take it as it is. It is
 * that of an input and comes from attribute `attr`; entries are counted from where that input's begin. */
grt_status moves_check_perm(const infer *inf, const char *attr, int32_t input, const int64_t *perm, size_t n);
/* The dims in the order of perm, which has been checked; NULL when out of memory. */
const grt_dim *moves_permuted(const infer *inf, const ir_type *type, const int64_t *perm);

/* Upgrades: attribute `name` (ints or int), if present, becomes a constant input at `index`. */
void moves_attr_to_input(ir_node *node, const char *name, int32_t index);
/* Put `value` at input `index`, with omitted inputs before it as needed. */
void moves_put_input(ir_node *node, int32_t index, ir_value *value);

/* The same, if attribute axis fits. */
grt_status moves_along_axis(infer *inf);

#endif
