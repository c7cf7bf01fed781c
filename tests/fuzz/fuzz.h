/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share. Each is one function over bytes; libFuzzer (fuzzing) or replay.c (make check)
 * feeds it. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <graphrt/graphrt.h>

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer's hook for mutations that know the format, and the mutation of bytes that it has itself. The size
 * of what is left in `data`, which has room for `max` bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* One for the life of the process: what a runtime costs is not paid for every input. */
grt_runtime *fuzz_runtime(void);
/* What a model or a plan does on the CPU: a session, and two runs with inputs drawn from the bytes. It must
 * end with a status that has a message. */
void fuzz_try(const uint8_t *data, size_t size);

#endif
