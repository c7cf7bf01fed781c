/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/dnnl_isa.h"

#include <math.h>

/* Outputs of an image that AVX2's kernels need to share one reading of the weights as well as AVX-512's. */
#define LEAST_PIXELS 32
/* Results of an image up to which AVX2's depthwise kernels are the faster ones whatever the channels. */
#define SMALL_DEPTHWISE 40000
/* Lanes for a channel in vectors of 16 from which on AVX2 is faster; costly activations want AVX-512. */
#define LANES        1.1
#define COSTLY_LANES 1.25

static bool acts_cheaply(const grt_dnnl_conv *c)
{
    bool cheap = true;
    for (int i = 0; i < c->post_count; i++)
        cheap &= c->post[i].kind != GRT_DNNL_POST_ACT || c->post[i].act.kind == GRT_ACT_RELU ||
                 c->post[i].act.kind == GRT_ACT_CLIP;
    return cheap;
}

/* In floating point: sizes that fit no memory are looked at before they are refused. */
static double pixels_of_image(const grt_dnnl_conv *c)
{
    double pixels = 1;
    for (int i = 0; i < c->spatial; i++)
        pixels *= (double)c->out[i];
    return pixels;
}

/* Where 512-bit instructions are two of 256 bits, vectors of 16 channels cost what they leave empty. Their
 * more and longer registers still help where weights are read for few pixels. */
bool dnnl_isa_prefers_avx2(const grt_dnnl_conv *c, bool halved)
{
    const double channels = (double)c->out_channels, lanes = ceil(channels / 16) * 16;
    const bool depthwise = c->groups == c->in_channels && c->groups > 1, cheap = acts_cheaply(c);
    if (!halved || c->transposed || c->src_layout != GRT_DNNL_CHANNELS_LAST)
        return false;
    if (depthwise && cheap && channels * pixels_of_image(c) <= SMALL_DEPTHWISE)
        return true;
    return pixels_of_image(c) >= LEAST_PIXELS && lanes >= channels * (cheap ? LANES : COSTLY_LANES);
}
