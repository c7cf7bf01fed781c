/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of cuDNN's that were made for another GPU: its description is exchanged, whatever the text is. */
#include "backends/cuda/dnn_profile.h"
#include "tests/unit/suite.h"

#include <stdlib.h>

static void expect(const char *text, const char *profile, const char *expected)
{
    char *out = cuda_dnn_profile_replace(text, profile);
    if (expected)
        ck_assert_str_eq(out, expected);
    else
        ck_assert_ptr_null(out);
    free(out);
}

START_TEST(the_gpu_is_exchanged)
{
    expect("{\"a\":1,\"GPUProfile\":{\"n\":[1,2]},\"b\":2}", "{\"m\":3}",
           "{\"a\":1,\"GPUProfile\":{\"m\":3},\"b\":2}");
    expect("\"GPUProfile\":{}", "{\"m\":3}", "\"GPUProfile\":{\"m\":3}");
    expect("\"GPUProfile\":{\"a\":{\"b\":{}},\"c\":\"}\\\"}{\"}}", "{}", "\"GPUProfile\":{}}");
}
END_TEST

START_TEST(what_names_no_gpu)
{
    static const char *const texts[] = {"",
                                        "{}",
                                        "\"GPUProfile\":",
                                        "\"GPUProfile\":1",
                                        "\"GPUProfile\":{",
                                        "\"GPUProfile\":{\"a",
                                        "\"GPUProfile\":{\"a\\",
                                        "\"GPUProfile\":{\"a\":{}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(texts[i], "{}", NULL);
}
END_TEST

UNIT_SUITE(test_dnn_profile, NULL, NULL, the_gpu_is_exchanged, what_names_no_gpu)
