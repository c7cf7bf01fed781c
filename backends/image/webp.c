/* SPDX-License-Identifier: Apache-2.0 */
/* WebP, by libwebp. */
#include "backends/image/formats.h"

#include <stdlib.h>

#include <webp/decode.h>

bool image_decode_webp(image_bytes bytes, image *out)
{
    const size_t size = (size_t)(bytes.end - bytes.at);
    int width, height;
    image made;
    if (!WebPGetInfo(bytes.at, size, &width, &height) || !image_alloc(width, height, &made))
        return false;
    if (!WebPDecodeRGBInto(bytes.at, size, made.rgb, (size_t)width * 3 * (size_t)height, 3 * width)) {
        free(made.rgb);
        return false;
    }
    *out = made;
    return true;
}
