/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of AMX and alternate signal stacks: the system refuses one of both to a process that wants them. On
 * machines without AMX nothing is ever refused. */
#include "backends/cpu/isa.h"
#include "backends/cpu/qgemm_kernel.h"
#include "tests/unit/runtime.h"
#include "tests/unit/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { SMALL = 8192 }; /* SIGSTKSZ of old C libraries; tiles alone are as many bytes */

static char small_stack[SMALL];

/* False if the system has no such small signal stacks. */
static bool take_small_stack(void)
{
    const stack_t wanted = {.ss_sp = small_stack, .ss_size = SMALL};
    return sigaltstack(&wanted, NULL) == 0;
}

static bool give_stack_back(void)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    return sigaltstack(&none, NULL) == 0;
}

/* A convolution of oneDNN's, and a product. */
static void run_digits(void)
{
    static float image[64];
    const char *srcdir = getenv("srcdir");
    char path[4096];
    grt_model *model;
    grt_session *session;
    grt_context *context;
    const grt_tensor input = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {1, 1, 8, 8}, .data = image};
    snprintf(path, sizeof path, "%s/models/digits/digits.onnx", srcdir ? srcdir : "..");
    OK(grt_model_open(runtime, path, &model));
    OK(grt_session_create(model, "cpu", NULL, &session));
    OK(grt_context_create(session, &context));
    OK(grt_context_set_input(context, 0, &input));
    OK(grt_context_run(context));
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}

START_TEST(float_models_leave_small_signal_stacks_alone)
{
    const bool there = take_small_stack();
    ck_assert(give_stack_back());
    run_digits();
    ck_assert_int_eq(take_small_stack(), there);
}
END_TEST

START_TEST(capped_processes_leave_them_alone)
{
    const bool there = take_small_stack();
    ck_assert(give_stack_back());
    setenv("GRAPHRT_CPU_ISA", "avx512", 1);
    ck_assert_ptr_nonnull(grt_qgemm_kernels()[0]);
    ck_assert(!cpu_isa_may_use_tiles());
    ck_assert_int_eq(take_small_stack(), there);
}
END_TEST

START_TEST(tiles_are_not_used_beside_them)
{
    if (!take_small_stack())
        return; /* another machine's minimum; there is nothing to be refused */
    ck_assert(!cpu_isa_may_use_tiles());
    ck_assert_str_ne(grt_qgemm_kernels()[0]->name, "amx");
    ck_assert(give_stack_back());
    ck_assert(!cpu_isa_may_use_tiles()); /* asked once */
}
END_TEST

START_TEST(tiles_are_used_where_they_are)
{
    const bool may = cpu_isa_may_use_tiles();
    ck_assert(!may || cpu_isa_best() == CPU_ISA_AMX);
    ck_assert_int_eq(!strcmp(grt_qgemm_kernels()[0]->name, "amx"), may);
}
END_TEST

UNIT_SUITE(test_isa, runtime_open, runtime_close, float_models_leave_small_signal_stacks_alone,
           capped_processes_leave_them_alone, tiles_are_not_used_beside_them, tiles_are_used_where_they_are)
