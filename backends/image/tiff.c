/* SPDX-License-Identifier: Apache-2.0 */
/* TIFF, the first page, by libtiff. */
#include "backends/image/formats.h"

#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

typedef struct memory {
    const uint8_t *data;
    toff_t size, at;
} memory;

static tmsize_t read_memory(thandle_t handle, void *to, tmsize_t n)
{
    memory *m = handle;
    const toff_t left = m->at < m->size ? m->size - m->at : 0;
    const size_t count = (toff_t)n < left ? (size_t)n : (size_t)left;
    memcpy(to, m->data + (m->at < m->size ? m->at : 0), count);
    m->at += count;
    return (tmsize_t)count;
}

static tmsize_t write_memory(thandle_t handle, void *from, tmsize_t n)
{
    (void)handle;
    (void)from;
    (void)n;
    return 0;
}

static toff_t seek_memory(thandle_t handle, toff_t offset, int whence)
{
    memory *m = handle;
    m->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? m->at + offset : m->size + offset;
    return m->at;
}

static int close_memory(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t size_of_memory(thandle_t handle)
{
    return ((memory *)handle)->size;
}

/* Nothing is printed: this says that the message was dealt with. */
static int tiff_say_nothing(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

static TIFF *open_memory(memory *m)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)1 << 30);
    TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_say_nothing, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_say_nothing, NULL);
    TIFF *tiff = TIFFClientOpenExt("image", "rm", m, read_memory, write_memory, seek_memory, close_memory,
                                   size_of_memory, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

static bool read_raster(TIFF *tiff, image *out)
{
    uint32_t width = 0, height = 0;
    image made;
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) || !image_alloc(width, height, &made))
        return false;
    const size_t n = (size_t)width * height;
    uint32_t *raster = calloc(n, sizeof *raster);
    const bool done =
        raster && TIFFReadRGBAImageOriented(tiff, width, height, raster, ORIENTATION_TOPLEFT, 1);
    for (size_t i = 0; done && i < n; i++) {
        made.rgb[3 * i] = TIFFGetR(raster[i]);
        made.rgb[3 * i + 1] = TIFFGetG(raster[i]);
        made.rgb[3 * i + 2] = TIFFGetB(raster[i]);
    }
    free(raster);
    if (done)
        *out = made;
    else
        free(made.rgb);
    return done;
}

bool image_decode_tiff(image_bytes bytes, image *out)
{
    memory m = {bytes.at, (toff_t)(bytes.end - bytes.at), 0};
    TIFF *tiff = open_memory(&m);
    if (!tiff)
        return false;
    const bool done = read_raster(tiff, out);
    TIFFClose(tiff);
    return done;
}
