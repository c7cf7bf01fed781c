/* What the fuzz targets share. Each is one function over bytes; libFuzzer (fuzzing) or replay.c (make check)
 * feeds it. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
