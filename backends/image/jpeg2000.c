/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG 2000, as a file or a bare code stream, by OpenJPEG: grey or RGB, all components of one size. */
#include "backends/image/formats.h"

#include <stdlib.h>
#include <string.h>

#include <openjpeg.h>

static OPJ_SIZE_T jpeg2000_read_bytes(void *to, OPJ_SIZE_T n, void *user)
{
    image_bytes *b = user;
    const OPJ_SIZE_T left = (OPJ_SIZE_T)(b->end - b->at), count = n < left ? n : left;
    if (!count)
        return (OPJ_SIZE_T)-1;
    memcpy(to, b->at, count);
    b->at += count;
    return count;
}

static OPJ_OFF_T skip_bytes(OPJ_OFF_T n, void *user)
{
    image_bytes *b = user;
    const OPJ_OFF_T left = b->end - b->at, count = n < left ? n : left;
    if (n < 0)
        return -1;
    b->at += count;
    return count;
}

typedef struct decoder {
    opj_codec_t *codec;
    opj_stream_t *stream;
    opj_image_t *image;
} decoder;

static bool decode_stream(decoder *d, image_bytes *bytes)
{
    opj_dparameters_t parameters;
    const OPJ_CODEC_FORMAT format = bytes->at[0] == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2;
    opj_set_default_decoder_parameters(&parameters);
    d->codec = opj_create_decompress(format);
    d->stream = opj_stream_default_create(OPJ_TRUE);
    if (!d->codec || !d->stream)
        return false;
    opj_stream_set_user_data(d->stream, bytes, NULL);
    opj_stream_set_user_data_length(d->stream, (OPJ_UINT64)(bytes->end - bytes->at));
    opj_stream_set_read_function(d->stream, jpeg2000_read_bytes);
    opj_stream_set_skip_function(d->stream, skip_bytes);
    if (!opj_setup_decoder(d->codec, &parameters) || !opj_read_header(d->stream, d->codec, &d->image))
        return false;
    const int64_t width = (int64_t)d->image->x1 - d->image->x0, height = (int64_t)d->image->y1 - d->image->y0;
    if (width < 1 || height < 1 || width > IMAGE_MOST_PIXELS / height || d->image->numcomps > 4)
        return false;
    return opj_decode(d->codec, d->stream, d->image) && opj_end_decompress(d->codec, d->stream);
}

/* Any precision to 8 bits. */
static uint8_t to_byte(const opj_image_comp_t *c, size_t i)
{
    int64_t value = (int64_t)c->data[i] + (c->sgnd ? (int64_t)1 << (c->prec - 1) : 0);
    value = c->prec > 8 ? value >> (c->prec - 8) : c->prec < 8 ? value * 255 / ((1 << c->prec) - 1) : value;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static bool jpeg2000_take_pixels(const opj_image_t *from, image *out)
{
    const opj_image_comp_t *c = from->comps;
    const uint32_t colours = from->numcomps < 3 ? 1 : 3;
    image made;
    if (!from->numcomps || from->color_space == OPJ_CLRSPC_SYCC || from->color_space == OPJ_CLRSPC_CMYK ||
        from->color_space == OPJ_CLRSPC_EYCC)
        return false;
    for (uint32_t k = 0; k < colours; k++)
        if (!c[k].data || c[k].w != c[0].w || c[k].h != c[0].h || c[k].prec < 1 || c[k].prec > 31)
            return false;
    if (!image_alloc(c[0].w, c[0].h, &made))
        return false;
    for (size_t i = 0; i < (size_t)made.width * (size_t)made.height; i++)
        for (uint32_t k = 0; k < 3; k++)
            made.rgb[3 * i + k] = to_byte(&c[colours == 3 ? k : 0], i);
    *out = made;
    return true;
}

bool image_decode_jpeg2000(image_bytes bytes, image *out)
{
    decoder d = {0};
    const bool done = decode_stream(&d, &bytes) && jpeg2000_take_pixels(d.image, out);
    opj_image_destroy(d.image);
    opj_stream_destroy(d.stream);
    opj_destroy_codec(d.codec);
    return done;
}
