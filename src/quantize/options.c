/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/options.h"

#include "src/base/structs.h"

static grt_status refuse_option(const char *what)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_quantize_options: %s", what);
}

bool quantize_options_float8(const grt_quantize_options *o)
{
    return o->mode == GRT_QUANTIZE_STATIC && o->activations == GRT_DTYPE_FLOAT8E4M3FN;
}

static grt_status check_float8(const grt_quantize_options *o)
{
    if (o->weights != GRT_DTYPE_FLOAT8E4M3FN)
        return refuse_option("activations FLOAT8E4M3FN need weights of the same type");
    if (o->calibration == GRT_CALIBRATION_MSE)
        return refuse_option("calibration MSE is of integers, whose numbers are equally far from each other");
    return GRT_OK;
}

static grt_status check_modes(const grt_quantize_options *o)
{
    if (o->mode < GRT_QUANTIZE_STATIC || o->mode > GRT_QUANTIZE_WEIGHTS)
        return refuse_option("mode is none of GRT_QUANTIZE_*");
    if (o->calibration < GRT_CALIBRATION_MIN_MAX || o->calibration > GRT_CALIBRATION_MSE)
        return refuse_option("calibration is none of GRT_CALIBRATION_*");
    if (o->activations != GRT_DTYPE_UINT8 && o->activations != GRT_DTYPE_INT8 &&
        o->activations != GRT_DTYPE_FLOAT8E4M3FN)
        return refuse_option("activations is none of UINT8, INT8 and FLOAT8E4M3FN");
    if (o->weights != GRT_DTYPE_INT8 && o->weights != GRT_DTYPE_INT4 && o->weights != GRT_DTYPE_FLOAT8E4M3FN)
        return refuse_option("weights is none of INT8, INT4 and FLOAT8E4M3FN");
    if (quantize_options_float8(o))
        return check_float8(o);
    if (o->weights != GRT_DTYPE_INT8 && o->mode != GRT_QUANTIZE_WEIGHTS)
        return refuse_option(
            "weights other than INT8 need mode GRT_QUANTIZE_WEIGHTS, or activations FLOAT8E4M3FN");
    return GRT_OK;
}

static grt_status check_numbers(const grt_quantize_options *o)
{
    if (!(o->percentile > 50 && o->percentile <= 100))
        return refuse_option("percentile is not above 50 and at most 100");
    if (o->block != -1 && o->block < 16)
        return refuse_option("block is neither -1 nor at least 16");
    if (!(o->max_error >= 0))
        return refuse_option("max_error is negative");
    if (o->n_samples && !o->sample)
        return refuse_option("there are n_samples, and sample is NULL");
    if (o->mode == GRT_QUANTIZE_STATIC && !o->n_samples)
        return refuse_option("mode GRT_QUANTIZE_STATIC needs samples");
    if (o->max_error > 0 && (o->measured < 0 || !o->n_samples))
        return refuse_option("max_error needs samples to measure with");
    return GRT_OK;
}

grt_status quantize_options_take(grt_quantize_options *o, const grt_quantize_options *theirs)
{
    *o = (grt_quantize_options){.struct_size = sizeof *o};
    GRT_TRY(grt_options_take(o, sizeof *o, theirs, "grt_quantize_options"));
    o->activations = o->activations ? o->activations : GRT_DTYPE_UINT8;
    o->weights = o->weights                   ? o->weights
                 : quantize_options_float8(o) ? GRT_DTYPE_FLOAT8E4M3FN
                                              : GRT_DTYPE_INT8;
    o->percentile = o->percentile == 0 ? 99.99 : o->percentile;
    o->block = o->block ? o->block : 32;
    o->measured = o->measured ? o->measured : 16;
    o->ops = o->ops ? o->ops : "Conv,MatMul,Gemm";
    GRT_TRY(check_modes(o));
    return check_numbers(o);
}
