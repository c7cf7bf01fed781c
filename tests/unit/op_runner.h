/* SPDX-License-Identifier: Apache-2.0 */
/* One op by itself: its shape rule, then its CPU kernel, on tensors of the test's. */
#ifndef GRT_TESTS_OP_RUNNER_H
#define GRT_TESTS_OP_RUNNER_H

#include "backends/backend.h"
#include "graph/ir/op.h"

enum { OP_RUNNER_MAX = 32 };

typedef struct op_runner {
    grt_op_desc desc;
    grt_attr attrs[OP_RUNNER_MAX];
    grt_value in[OP_RUNNER_MAX], out[OP_RUNNER_MAX]; /* in: borrowed data, or what op_add_value shares */
    const grt_tensor *in_views[OP_RUNNER_MAX];
    int32_t n_in, n_out;
    int32_t threads;
    uint32_t constants; /* bit i: the kernel sees input i's content when it is created */
    bool known;         /* kernels are created with the outputs' dims, as where a model's are static */
    bool pack;          /* constants are packed first, as a plan has them */
    void *packed[OP_RUNNER_MAX];
    grt_arena *arena; /* strings of outputs */
} op_runner;

void op_begin(op_runner *r, const char *domain, const char *op);
void op_end(op_runner *r);
void op_int(op_runner *r, const char *name, int64_t value);
void op_float(op_runner *r, const char *name, float value);
void op_string(op_runner *r, const char *name, const char *value);
void op_ints(op_runner *r, const char *name, const int64_t *values, size_t n);
void op_floats(op_runner *r, const char *name, const float *values, size_t n);
void op_strings(op_runner *r, const char *name, const grt_string *values, size_t n);
void op_tensor(op_runner *r, const char *name, const grt_tensor *value);
/* Inputs in order; data and values stay the test's. A value is shared. */
void op_add(op_runner *r, grt_dtype dtype, int32_t rank, const int64_t *dims, const void *data);
void op_add_value(op_runner *r, const grt_value *value);
void op_omit(op_runner *r);
/* Infer with symbolic and with concrete dims, then run. Outputs are in r->out. */
grt_status op_run(op_runner *r, int32_t n_out);
/* The same, failing the test with the error's text. */
void op_run_ok(op_runner *r, int32_t n_out);

/* Numbers in [-1, 1) that are the same on every machine. */
void fill_floats(float *out, int64_t n, uint32_t seed);

#endif
