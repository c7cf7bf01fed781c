/* SPDX-License-Identifier: Apache-2.0 */
/* BMP, uncompressed: palettes of 1, 4 and 8 bits, 24 and 32 bits a pixel. */
#include "backends/image/formats.h"

#include <stdlib.h>

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

typedef struct header {
    int64_t width, height;
    bool down; /* rows from the top */
    uint32_t bits, pixels;
    const uint8_t *palette; /* 4 bytes a colour */
    uint32_t colours;
    size_t row_bytes;
} header;

static bool bmp_read_header(image_bytes bytes, header *h)
{
    enum { FILE_HEADER = 14, INFO_HEADER = 40, BITFIELDS = 3 };
    const size_t size = (size_t)(bytes.end - bytes.at);
    if (size < FILE_HEADER + INFO_HEADER)
        return false;
    const uint8_t *info = bytes.at + FILE_HEADER;
    const uint32_t info_size = word(info), compression = word(info + 16);
    const int32_t height = (int32_t)word(info + 8);
    *h = (header){.width = (int32_t)word(info + 4),
                  .height = height < 0 ? -(int64_t)height : height,
                  .down = height < 0,
                  .bits = word(info + 12) >> 16,
                  .pixels = word(bytes.at + 10),
                  .colours = word(info + 32)};
    /* Bit fields are taken as blue, green, red, which all that write 32 bits use. */
    if (info_size < INFO_HEADER || info_size > size - FILE_HEADER || h->width < 1 || h->pixels > size ||
        (compression && !(compression == BITFIELDS && h->bits == 32)))
        return false;
    if (h->bits == 1 || h->bits == 4 || h->bits == 8) {
        h->palette = info + info_size;
        const uint8_t *end = bytes.at + h->pixels; /* a palette may be shorter than it could be */
        const size_t room = end > h->palette ? (size_t)(end - h->palette) / 4 : 0;
        h->colours = h->colours ? h->colours : 1u << h->bits;
        h->colours = h->colours < room ? h->colours : (uint32_t)room;
    } else if (h->bits != 24 && h->bits != 32) {
        return false;
    }
    h->row_bytes = ((size_t)h->width * h->bits + 31) / 32 * 4;
    return (size - h->pixels) / h->row_bytes >= (size_t)h->height;
}

static bool read_row(const header *h, const uint8_t *row, uint8_t *rgb)
{
    for (int64_t x = 0; x < h->width; x++, rgb += 3) {
        const uint8_t *bgr = row + x * (h->bits / 8);
        if (h->palette) {
            const int64_t bit = x * h->bits;
            const uint32_t index = (uint32_t)row[bit / 8] >> (8 - h->bits - bit % 8) & ((1u << h->bits) - 1);
            if (index >= h->colours)
                return false;
            bgr = h->palette + 4 * index;
        }
        rgb[0] = bgr[2];
        rgb[1] = bgr[1];
        rgb[2] = bgr[0];
    }
    return true;
}

bool image_decode_bmp(image_bytes bytes, image *out)
{
    header h;
    image made;
    if (!bmp_read_header(bytes, &h) || !image_alloc(h.width, h.height, &made))
        return false;
    for (int64_t y = 0; y < h.height; y++) {
        const uint8_t *row = bytes.at + h.pixels + (size_t)(h.down ? y : h.height - 1 - y) * h.row_bytes;
        if (!read_row(&h, row, made.rgb + 3 * y * h.width)) {
            free(made.rgb);
            return false;
        }
    }
    *out = made;
    return true;
}
