/* SPDX-License-Identifier: Apache-2.0 */
/* ImageDecoder: bytes of a file to [height, width, channels]. */
#include "graph/ir/op.h"

#include <string.h>

static const op_attr attrs[] = {{"pixel_format", GRT_ATTR_STRING, false}, {0}};

static grt_status infer_decoder(infer *inf)
{
    const char *format = grt_attr_string(inf->desc, "pixel_format", "RGB");
    const bool grey = !strcmp(format, "Grayscale");
    if (!grey && strcmp(format, "RGB") != 0 && strcmp(format, "BGR") != 0)
        return infer_fail(inf, "attribute pixel_format is '%s'; it must be RGB, BGR or Grayscale", format);
    if (inf->in[0]->rank >= 0 && inf->in[0]->rank != 1)
        return infer_fail(inf, "the input has rank %d; it must be the bytes of one file", inf->in[0]->rank);
    infer_set_fresh(inf, 0, GRT_DTYPE_UINT8, 3);
    if (inf->out[0].dims)
        ((grt_dim *)inf->out[0].dims)[2] = grt_dim_const(inf->dims, grey ? 1 : 3);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "ImageDecoder",
     .since = 20,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .infer = infer_decoder},
};
OP_TABLE(image_decoder, rows);
