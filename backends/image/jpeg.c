/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG, by libjpeg-turbo with its usual upsampling, which the standard prescribes. */
#include "backends/image/formats.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    image made;
} decoder;

static void jpeg_leave(j_common_ptr jpeg)
{
    longjmp(((decoder *)(void *)jpeg)->failed, 1);
}

static void jpeg_say_nothing(j_common_ptr jpeg)
{
    (void)jpeg;
}

/* Of what follows setjmp, only *d changes. */
static bool decode_scanlines(decoder *d, image_bytes bytes)
{
    if (setjmp(d->failed))
        return false;
    jpeg_create_decompress(&d->jpeg);
    d->jpeg.mem->max_memory_to_use = 1L << 29;
    jpeg_mem_src(&d->jpeg, bytes.at, (unsigned long)(bytes.end - bytes.at));
    jpeg_read_header(&d->jpeg, TRUE);
    d->jpeg.out_color_space = JCS_RGB;
    if (!image_alloc(d->jpeg.image_width, d->jpeg.image_height, &d->made))
        return false;
    jpeg_start_decompress(&d->jpeg);
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        JSAMPROW row = d->made.rgb + (size_t)3 * d->jpeg.output_scanline * (size_t)d->made.width;
        jpeg_read_scanlines(&d->jpeg, &row, 1);
    }
    jpeg_finish_decompress(&d->jpeg);
    return true;
}

bool image_decode_jpeg(image_bytes bytes, image *out)
{
    decoder *d = calloc(1, sizeof *d);
    if (!d)
        return false;
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = jpeg_leave;
    d->errors.output_message = jpeg_say_nothing;
    const bool done = decode_scanlines(d, bytes);
    jpeg_destroy_decompress(&d->jpeg);
    if (done)
        *out = d->made;
    else
        free(d->made.rgb);
    free(d);
    return done;
}
