/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the public API on a CUDA device, beside the caller's own use of CUDA. Each test is a function in a
 * process of its own, as it may break the driver's context. */
#ifndef GRT_TESTS_DEVICE_DEVICE_H
#define GRT_TESTS_DEVICE_DEVICE_H

#include <cuda_runtime_api.h>
#include <graphrt/graphrt.h>
#include <stdbool.h>
#include <stdio.h>

#define X(name) bool name(const char *model_path);
#include "tests/device/tests.def"
#undef X

/* Assertion of a test; on failure the test ends with the reason. */
#define EXPECT(condition, ...)                                       \
    do {                                                             \
        if (!(condition)) {                                          \
            printf("  %s:%d: %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                     \
            printf("\n");                                            \
            return false;                                            \
        }                                                            \
    } while (0)
#define DONE(call) EXPECT((call) == GRT_OK, "%s", grt_last_error())
#define CUDA(call) EXPECT((call) == cudaSuccess, "%s", cudaGetErrorString(cudaGetLastError()))

/* A model on cuda:0 and a context. */
typedef struct subject {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context;
} subject;

bool subject_open(subject *s, const char *path);
/* What tests/differential draws, described by hand. */
struct node;
bool subject_model(subject *s, const struct node *n);
/* One node with these inputs; a constant one is an initializer with its data. */
bool subject_node(subject *s, const char *op, grt_dtype out, const grt_tensor *in, int n_in,
                  int first_constant);
void subject_release(subject *s);

#endif
