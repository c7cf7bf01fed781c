/* SPDX-License-Identifier: Apache-2.0 */
/* Which decoder an image is for, and the module's one symbol. */
#include "backends/image/formats.h"

#include <stdlib.h>
#include <string.h>

bool image_alloc(int64_t width, int64_t height, image *out)
{
    if (width < 1 || height < 1 || width > IMAGE_MOST_PIXELS / height)
        return false;
    uint8_t *rgb = calloc((size_t)(width * height), 3);
    if (!rgb)
        return false;
    *out = (image){width, height, rgb};
    return true;
}

static bool begins(image_bytes bytes, const char *with, size_t n)
{
    return (size_t)(bytes.end - bytes.at) >= n && !memcmp(bytes.at, with, n);
}

static bool decode_image(const uint8_t *data, size_t size, image *out)
{
    static const struct {
        const char *first;
        size_t n;
        bool (*decode)(image_bytes bytes, image *out);
    } formats[] = {
        {"BM", 2, image_decode_bmp},
        {"\xff\xd8\xff", 3, image_decode_jpeg},
        {"\x89PNG\r\n\x1a\n", 8, image_decode_png},
        {"RIFF", 4, image_decode_webp},
        {"II*\0", 4, image_decode_tiff},
        {"MM\0*", 4, image_decode_tiff},
        {"\0\0\0\x0cjP  ", 8, image_decode_jpeg2000},
        {"\xff\x4f\xff\x51", 4, image_decode_jpeg2000},
        {"P", 1, image_decode_pnm},
    };
    const image_bytes bytes = {data, data + size};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (begins(bytes, formats[i].first, formats[i].n))
            return formats[i].decode(bytes, out);
    return false;
}

const image_module grt_image_module = {decode_image};
