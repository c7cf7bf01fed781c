/* SPDX-License-Identifier: Apache-2.0 */
/* PNG, by libpng. Gamma and colour profiles are left as they are. */
#include "backends/image/formats.h"

#include <stdlib.h>
#include <string.h>

#include <png.h>

typedef struct decoder {
    png_structp png;
    png_infop info;
    image_bytes bytes;
    image made;
    png_bytep *rows;
} decoder;

static void png_read_bytes(png_structp png, png_bytep to, size_t n)
{
    decoder *d = png_get_io_ptr(png);
    if ((size_t)(d->bytes.end - d->bytes.at) < n)
        png_error(png, "it ends too early");
    memcpy(to, d->bytes.at, n);
    d->bytes.at += n;
}

static void png_fail(png_structp png, png_const_charp text)
{
    (void)text;
    png_longjmp(png, 1);
}

static void png_say_nothing(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* Of what follows setjmp, only *d changes. */
static bool png_decode_rows(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)))
        return false;
    png_set_read_fn(d->png, d, png_read_bytes);
    png_set_user_limits(d->png, 1 << 26, 1 << 26);
    png_read_info(d->png, d->info);
    if (!image_alloc(png_get_image_width(d->png, d->info), png_get_image_height(d->png, d->info), &d->made))
        return false;
    png_set_expand(d->png);
    png_set_strip_16(d->png);
    png_set_strip_alpha(d->png);
    png_set_gray_to_rgb(d->png);
    png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != (size_t)d->made.width * 3)
        return false;
    d->rows = malloc((size_t)d->made.height * sizeof *d->rows);
    if (!d->rows)
        return false;
    for (int64_t y = 0; y < d->made.height; y++)
        d->rows[y] = d->made.rgb + 3 * y * d->made.width;
    png_read_image(d->png, d->rows);
    return true;
}

bool image_decode_png(image_bytes bytes, image *out)
{
    decoder d = {.bytes = bytes};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, png_fail, png_say_nothing);
    d.info = d.png ? png_create_info_struct(d.png) : NULL;
    const bool done = d.info && png_decode_rows(&d);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    free(d.rows);
    if (done)
        *out = d.made;
    else
        free(d.made.rgb);
    return done;
}
