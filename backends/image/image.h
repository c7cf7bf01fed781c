/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded images to pixels. A module of its own, libgraphrt-image.so: what nobody decodes needs none of its
 * libraries. */
#ifndef GRT_BACKENDS_IMAGE_IMAGE_H
#define GRT_BACKENDS_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger images are taken for broken ones: their header may claim what their bytes do not hold. */
#define IMAGE_MOST_PIXELS ((int64_t)1 << 26)

typedef struct image {
    int64_t width, height;
    uint8_t *rgb; /* malloc'ed, rows from the top, 3 bytes a pixel */
} image;

/* What the module exports. */
typedef struct image_module {
    /* BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP, told by the first bytes. False: it cannot be decoded,
     * *out is untouched. Transparency is dropped; grey becomes three equal bytes. */
    bool (*decode)(const uint8_t *data, size_t size, image *out);
} image_module;
extern __attribute__((visibility("default"))) const image_module grt_image_module;

#endif
