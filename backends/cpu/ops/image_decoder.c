/* SPDX-License-Identifier: Apache-2.0 */
/* ImageDecoder, by the module of backends/image/. What cannot be decoded gives an image without pixels, as
 * the standard has it. */
#include "backends/cpu/cpu.h"
#include "backends/image/image.h"
#include "backends/module.h"
#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

static const image_module *open_module(void)
{
    const void *found;
    return grt_module_find("image", "grt_image_module", NULL, &found) == GRT_OK ? found : NULL;
}

static bool supports_decoder(const grt_kernel_node *node, grt_text *why)
{
    (void)node;
    if (open_module())
        return true;
    if (why)
        grt_text_add(
            why,
            "images are decoded by the module libgraphrt-image.so, which was not found; configure builds it "
            "where libjpeg, libpng, libtiff, libwebp and libopenjp2 are installed");
    return false;
}

static grt_status create_decoder(const grt_kernel_node *node, void **out_state)
{
    (void)node;
    *out_state = (void *)(uintptr_t)open_module();
    return *out_state ? GRT_OK
                      : grt_fail_context(GRT_STATUS_UNSUPPORTED, "ImageDecoder node '%s'", node->desc->name);
}

/* The luma of ITU-R 601, rounded in 16 bits. */
static uint8_t grey_of(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static void put_pixels(const image *from, const char *format, uint8_t *to)
{
    const int64_t n = from->width * from->height;
    const bool grey = !strcmp(format, "Grayscale"), swap = !strcmp(format, "BGR");
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *rgb = from->rgb + 3 * i;
        if (grey) {
            to[i] = grey_of(rgb);
        } else {
            to[3 * i] = rgb[swap ? 2 : 0];
            to[3 * i + 1] = rgb[1];
            to[3 * i + 2] = rgb[swap ? 0 : 2];
        }
    }
}

static grt_status run_decoder(const grt_run *run)
{
    const image_module *module = run->state;
    const char *format = grt_attr_string(run->desc, "pixel_format", "RGB");
    image decoded = {0};
    if (!module->decode(run->in[0]->data, (size_t)grt_tensor_elements(run->in[0]), &decoded))
        decoded = (image){0};
    const int64_t dims[] = {decoded.height, decoded.width, strcmp(format, "Grayscale") != 0 ? 3 : 1};
    const grt_status status = run->hooks->alloc_output(run, 0, 3, dims);
    if (status == GRT_OK)
        put_pixels(&decoded, format, run->out[0]->data);
    free(decoded.rgb);
    return status;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ImageDecoder",
     .types = {GRT_BIT(UINT8)},
     .flags = GRT_KERNEL_DYNAMIC,
     .supports = supports_decoder,
     .create = create_decoder,
     .run = run_decoder},
};
CPU_KERNELS(image_decoder, rows);
