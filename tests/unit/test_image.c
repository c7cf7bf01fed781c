/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of images: all formats, and bytes that are no image. They are a module that is optional: without
 * its libraries there is nothing to test, and opening says so. */
#include "backends/image/formats.h"
#include "tests/unit/image_samples.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample {
    const char *name;
    const void *data;
    size_t size;
    bool lossy;
} sample;

#define TEXT(name, text)                    \
    {                                       \
        name, text, sizeof(text) - 1, false \
    }
#define ARRAY(array, lossy)                \
    {                                      \
#array, array, sizeof array, lossy \
    }
#define BMP_HEADER(pixels, bits)                                            \
    "BM\0\0\0\0\0\0\0\0" pixels "\0\0\0\x28\0\0\0\3\0\0\0\2\0\0\0\1\0" bits \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const sample colours[] = {
    ARRAY(sample_png, false),
    ARRAY(sample_jpeg, true),
    ARRAY(sample_webp, false),
    ARRAY(sample_tiff, false),
    ARRAY(sample_jpeg2000, false),
    TEXT("P3", "P3\n# a comment\n3 2 255\n255 0 0 0 255 0 0 0 255\n10 20 30 128 128 128 250 240 230\n"),
    TEXT("P6", "P6 3 2 255\n\xff\0\0\0\xff\0\0\0\xff\x0a\x14\x1e\x80\x80\x80\xfa\xf0\xe6"),
    TEXT("BMP 24", BMP_HEADER("\x36", "\x18") "\x1e\x14\x0a\x80\x80\x80\xe6\xf0\xfa\0\0\0"
                                              "\0\0\xff\0\xff\0\xff\0\0\0\0\0"),
    TEXT("BMP 32", BMP_HEADER("\x36", "\x20") "\x1e\x14\x0a\0\x80\x80\x80\0\xe6\xf0\xfa\0"
                                              "\0\0\xff\0\0\xff\0\0\xff\0\0\0"),
};

static const sample greys[] = {
    TEXT("P1", "P1 3 2\n011\n 1 0 0"),
    TEXT("P4", "P4 3 2\n\x60\x80"),
    TEXT("P2", "P2 3 2 4\n4 0 0 0 4 4"),
    TEXT("P5", "P5 3 2 65535\n\xff\xff\0\0\0\0\0\0\xff\xff\xff\xff"),
    TEXT("BMP 8", BMP_HEADER("\x3e", "\x08") "\0\0\0\0\xff\xff\xff\0\0\1\1\0\1\0\0\0"),
};

static void expect_image(const sample *s, const uint8_t *rgb, int tolerance)
{
    image made = {0};
    ck_assert_msg(grt_image_module.decode(s->data, s->size, &made), "%s", s->name);
    ck_assert_msg(made.width == 3 && made.height == 2, "%s is %d x %d", s->name, (int)made.width,
                  (int)made.height);
    for (int i = 0; i < 18; i++)
        ck_assert_msg(abs(made.rgb[i] - rgb[i]) <= tolerance, "%s: byte %d is %d, not %d", s->name, i,
                      made.rgb[i], rgb[i]);
    free(made.rgb);
}

START_TEST(formats_are_decoded)
{
    static const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 128, 128, 128, 250, 240, 230};
    static const uint8_t grey[] = {255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255};
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        expect_image(&colours[i], rgb, colours[i].lossy ? 12 : 0);
    for (size_t i = 0; i < sizeof greys / sizeof *greys; i++)
        expect_image(&greys[i], grey, 0);
}
END_TEST

/* Prefixes and changed bytes: an image or none, and nothing else happens. The bytes lie at the end of their
 * memory, so that sanitizers see what is read behind them. */
static void try_broken(const sample *s, uint32_t *random)
{
    for (size_t n = 0; n < s->size + 400; n++) {
        const size_t size = n < s->size ? n : s->size;
        uint8_t *bytes = malloc(size ? size : 1);
        image made = {0};
        memcpy(bytes, s->data, size);
        for (int k = 0; n >= s->size && k < 2; k++) {
            *random = *random * 1664525u + 1013904223u;
            bytes[(*random >> 8) % size] = (uint8_t)(*random >> 24);
        }
        if (grt_image_module.decode(bytes, size, &made))
            ck_assert(made.width > 0 && made.height > 0 && made.width <= IMAGE_MOST_PIXELS / made.height);
        else
            ck_assert_ptr_null(made.rgb);
        free(made.rgb);
        free(bytes);
    }
}

START_TEST(broken_bytes_do_no_harm)
{
    uint32_t random = 5;
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        try_broken(&colours[i], &random);
    for (size_t i = 0; i < sizeof greys / sizeof *greys; i++)
        try_broken(&greys[i], &random);
}
END_TEST

/* Sizes that are only claimed. */
START_TEST(large_sizes_are_refused)
{
    static const sample claims[] = {
        TEXT("P6", "P6 60000 60000 255\n\1"),
        TEXT("P5", "P5 8000 8000 255\n\1"),
        TEXT("P1", "P1 99999999999999999999 2\n1"),
        TEXT("P2", "P2 0 2 255\n"),
        TEXT("BMP",
             "BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\xff\xff\0\0\xff\xff\0\0\1\0\x18\0\0\0\0\0\0\0\0\0\0\0\0"
             "\0\0\0\0\0\0\0\0\0\0\0\0"),
    };
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        image made = {0};
        ck_assert_msg(!grt_image_module.decode(claims[i].data, claims[i].size, &made), "%s", claims[i].name);
    }
}
END_TEST

Suite *suite_test_image(void);
Suite *suite_test_image(void)
{
    Suite *suite = suite_create("image");
    TCase *tests = tcase_create("image");
    tcase_add_test(tests, formats_are_decoded);
    tcase_add_test(tests, broken_bytes_do_no_harm);
    tcase_add_test(tests, large_sizes_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
