/* SPDX-License-Identifier: Apache-2.0 */
/* One decoder a format; see image.h for what each promises. */
#ifndef GRT_BACKENDS_IMAGE_FORMATS_H
#define GRT_BACKENDS_IMAGE_FORMATS_H

#include "backends/image/image.h"

/* Bytes that are read from the front. */
typedef struct image_bytes {
    const uint8_t *at, *end;
} image_bytes;

/* Memory for the pixels, all black. False if the size is none or too large. */
bool image_alloc(int64_t width, int64_t height, image *out);

bool image_decode_bmp(image_bytes bytes, image *out);
bool image_decode_jpeg(image_bytes bytes, image *out);
bool image_decode_jpeg2000(image_bytes bytes, image *out);
bool image_decode_png(image_bytes bytes, image *out);
bool image_decode_pnm(image_bytes bytes, image *out);
bool image_decode_tiff(image_bytes bytes, image *out);
bool image_decode_webp(image_bytes bytes, image *out);

#endif
