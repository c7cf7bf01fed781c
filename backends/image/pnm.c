/* SPDX-License-Identifier: Apache-2.0 */
/* Portable bitmaps, graymaps and pixmaps (P1 to P6), in text and in bytes. */
#include "backends/image/formats.h"

#include <stdlib.h>

static bool pnm_is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void pnm_skip_space(image_bytes *b)
{
    while (b->at < b->end && (pnm_is_space(*b->at) || *b->at == '#'))
        if (*b->at++ == '#')
            while (b->at < b->end && *b->at != '\n')
                b->at++;
}

static bool read_number(image_bytes *b, int64_t most, int64_t *out)
{
    pnm_skip_space(b);
    if (b->at == b->end || *b->at < '0' || *b->at > '9')
        return false;
    *out = 0;
    while (b->at < b->end && *b->at >= '0' && *b->at <= '9' && *out <= most)
        *out = *out * 10 + (*b->at++ - '0');
    return *out <= most;
}

typedef struct samples {
    image_bytes bytes;
    int64_t maximum;
    bool text, bits;
    int left; /* bits of the byte before `bytes` */
} samples;

/* The next sample, from 0 to 255. */
static bool read_sample(samples *s, uint8_t *out)
{
    image_bytes *b = &s->bytes;
    int64_t value;
    if (s->bits && s->text) { /* one digit each, with or without space */
        pnm_skip_space(b);
        if (b->at == b->end || (*b->at != '0' && *b->at != '1'))
            return false;
        *out = *b->at++ == '0' ? 255 : 0;
        return true;
    }
    if (s->bits) {
        if (!s->left && b->at == b->end)
            return false;
        if (!s->left) {
            b->at++;
            s->left = 8;
        }
        *out = (b->at[-1] >> --s->left & 1) ? 0 : 255;
        return true;
    }
    if (s->text) {
        if (!read_number(b, s->maximum, &value))
            return false;
    } else {
        const int width = s->maximum > 255 ? 2 : 1;
        if (b->end - b->at < width)
            return false;
        value = width == 2 ? b->at[0] << 8 | b->at[1] : b->at[0];
        b->at += width;
        if (value > s->maximum)
            return false;
    }
    *out = (uint8_t)((value * 255 + s->maximum / 2) / s->maximum);
    return true;
}

static bool read_pixels(samples *s, int channels, image *to)
{
    for (int64_t y = 0; y < to->height; y++) {
        s->left = 0; /* rows of bits begin with a byte */
        for (int64_t x = 0; x < to->width; x++) {
            uint8_t *rgb = to->rgb + 3 * (y * to->width + x);
            for (int c = 0; c < channels; c++)
                if (!read_sample(s, rgb + c))
                    return false;
            if (channels == 1)
                rgb[1] = rgb[2] = rgb[0];
        }
    }
    return true;
}

bool image_decode_pnm(image_bytes bytes, image *out)
{
    int64_t width, height;
    image made;
    if (bytes.end - bytes.at < 3 || bytes.at[1] < '1' || bytes.at[1] > '6')
        return false;
    const int kind = bytes.at[1] - '0', form = (kind - 1) % 3; /* bits, grey, colours */
    samples s = {.bytes = {bytes.at + 2, bytes.end}, .maximum = 1, .text = kind < 4, .bits = form == 0};
    if (!read_number(&s.bytes, IMAGE_MOST_PIXELS, &width) ||
        !read_number(&s.bytes, IMAGE_MOST_PIXELS, &height) ||
        (form && (!read_number(&s.bytes, 65535, &s.maximum) || s.maximum < 1)))
        return false;
    if (!s.text && (s.bytes.at == s.bytes.end || !pnm_is_space(*s.bytes.at++)))
        return false;
    /* A sample has a bit at least. */
    if (height < 1 || width / 8 > (s.bytes.end - s.bytes.at) / height || !image_alloc(width, height, &made))
        return false;
    if (!read_pixels(&s, form == 2 ? 3 : 1, &made)) {
        free(made.rgb);
        return false;
    }
    *out = made;
    return true;
}
