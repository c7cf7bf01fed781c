/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im: columns of windows are added into the images that they came from. */
#include "graph/ops/moves.h"
#include "graph/ops/window.h"

/* `wanted`: entries for one axis; n_image: -1 where the number of axes is not known. */
static grt_status check_fold_list(const infer *inf, const char *name, int64_t n_image, int64_t wanted)
{
    size_t n;
    const int64_t *list = grt_attr_ints(inf->desc, name, &n);
    if (list && n_image >= 0 && n != (size_t)(n_image * wanted))
        return infer_fail(inf, "attribute %s has %zu entries, expected %lld", name, n,
                          (long long)(n_image * wanted));
    return GRT_OK;
}

static grt_status infer_col2im(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *image, *block;
    int64_t n_image, n_block;
    int32_t length;
    bool known_image = infer_elems(inf, 1, &image, &n_image),
         known_block = infer_elems(inf, 2, &block, &n_block);
    if (data->rank >= 0 && data->rank != 3)
        return infer_fail(inf, "the input must have rank 3, found rank %d", data->rank);
    GRT_TRY(check_fold_list(inf, "dilations", known_image ? n_image : -1, 1));
    GRT_TRY(check_fold_list(inf, "strides", known_image ? n_image : -1, 1));
    GRT_TRY(check_fold_list(inf, "pads", known_image ? n_image : -1, 2));
    if (data->rank < 0 || !known_image || !known_block) {
        if (known_image)
            infer_set_fresh(inf, 0, data->dtype, (int32_t)n_image + 2);
        else if (moves_length(inf, 1, &length) && length + 2 <= GRT_MAX_RANK)
            infer_set_fresh(inf, 0, data->dtype, length + 2);
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (n_image != n_block || n_image < 1)
        return infer_fail(inf, "image_shape has %lld entries and block_shape %lld", (long long)n_image,
                          (long long)n_block);
    GRT_TRY(moves_check_rank(inf, n_image + 2));
    grt_dim *dims = infer_dims(inf, (int32_t)n_image + 2);
    if (!dims)
        return GRT_OK;
    grt_dim volume = infer_product(inf, block, 0, (int32_t)n_block);
    int64_t rows, v;
    if (infer_const(inf, data->dims[1], &rows) && infer_const(inf, volume, &v) && (v <= 0 || rows % v))
        return infer_fail(inf,
                          "dim 1 of the input is %lld, which is no multiple of the block's %lld elements",
                          (long long)rows, (long long)v);
    dims[0] = data->dims[0];
    dims[1] = grt_dim_divide_exact(inf->dims, data->dims[1], volume);
    for (int64_t k = 0; k < n_image; k++) {
        if (infer_const(inf, image[k], &v) && v < 0)
            return infer_fail(inf, "image_shape[%lld] is %lld; expected a size", (long long)k, (long long)v);
        dims[k + 2] = image[k];
    }
    infer_set(inf, 0, data->dtype, (int32_t)n_image + 2, dims);
    return GRT_OK;
}

static const op_attr col2im_attrs[] = {{"dilations", GRT_ATTR_INTS, false},
                                       {"pads", GRT_ATTR_INTS, false},
                                       {"strides", GRT_ATTR_INTS, false},
                                       {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Col2Im",
     .since = 18,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = col2im_attrs,
     .ranges = window_ranges,
     .precision = OP_WIDE,
     .infer = infer_col2im},
};
OP_TABLE(col2im, rows);
