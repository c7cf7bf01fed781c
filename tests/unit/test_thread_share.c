/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that runs share: how many each gets, and that a run obeys. */
#include "src/base/thread_share.h"
#include "tests/unit/opened.h"
#include "tests/unit/suite.h"

#include <pthread.h>
#include <semaphore.h>
#ifdef _OPENMP
#include <omp.h>
#endif

START_TEST(grants_stay_within_the_limit)
{
    grt_thread_share share = {0};
    const grt_thread_grant free_of_charge = grt_thread_share_take(&share, 100);
    ck_assert(!free_of_charge.alone && free_of_charge.counted == 0);
    atomic_store(&share.limit, 4);
    const grt_thread_grant three = grt_thread_share_take(&share, 3), more = grt_thread_share_take(&share, 2),
                           one = grt_thread_share_take(&share, 1);
    ck_assert(!three.alone && three.counted == 3);
    ck_assert(more.alone && more.counted == 1);
    ck_assert(!one.alone && one.counted == 1);     /* it wanted no more */
    grt_thread_share_give(&share, free_of_charge); /* the limit was set since */
    grt_thread_share_give(&share, three);
    grt_thread_share_give(&share, more);
    const grt_thread_grant again = grt_thread_share_take(&share, 3);
    ck_assert(!again.alone);
    atomic_store(&share.limit, 0);
    grt_thread_share_give(&share, again);
    grt_thread_share_give(&share, one);
    ck_assert_int_eq(atomic_load(&share.used), 0);
}
END_TEST

static sem_t begun, go_on;
static bool waits;
static bool was_alone;

static grt_status infer_same(void *user, const grt_custom_node *node, const grt_custom_type *in,
                             grt_custom_type *out)
{
    (void)user;
    (void)node;
    out[0] = in[0];
    return GRT_OK;
}

/* The first run waits within its operator; those beside it look how many threads they may have. */
static grt_status run_look(void *user, void *state, const grt_custom_run *run)
{
    (void)user;
    (void)state;
    *(float *)run->outputs[0]->data = *(const float *)run->inputs[0]->data;
    if (waits) {
        waits = false;
        sem_post(&begun);
        sem_wait(&go_on);
        return GRT_OK;
    }
#ifdef _OPENMP
    was_alone = omp_get_max_active_levels() == 0;
#endif
    return GRT_OK;
}

static void open_session(grt_session **out_session)
{
    static const uint64_t floats[] = {1 << GRT_DTYPE_FLOAT};
    static const grt_custom_op look = {.struct_size = sizeof look,
                                       .domain = "test",
                                       .name = "Look",
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .min_outputs = 1,
                                       .max_outputs = 1,
                                       .input_dtypes = floats,
                                       .n_input_dtypes = 1,
                                       .infer = infer_same,
                                       .run = run_look};
    const grt_session_options options = {.struct_size = sizeof options, .threads = 2};
    onnx_model m = onnx_create();
    OK(grt_custom_ops_register(&look, 1));
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1");
    onnx_node(&m, m.graph, "Look", "x", "y")->domain = "test";
    onnx_output(&m, m.graph, "y");
    onnx_opset(&m, "test", 1);
    grt_model *model = onnx_open(&m, runtime);
    OK(grt_session_create(model, "cpu", &options, out_session));
    grt_model_release(model);
    onnx_release(&m);
}

static void *run_once(void *session_of_it)
{
    float x = 3;
    const grt_tensor input = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {1}, .data = &x};
    grt_context *own;
    OK(grt_context_create(session_of_it, &own));
    OK(grt_context_set_input(own, 0, &input));
    OK(grt_context_run(own));
    grt_context_release(own);
    return NULL;
}

static bool alone_beside_another(grt_session *session_of_both)
{
    pthread_t first;
    waits = true;
    ck_assert_int_eq(pthread_create(&first, NULL, run_once, session_of_both), 0);
    sem_wait(&begun);
    run_once(session_of_both);
    sem_post(&go_on);
    pthread_join(first, NULL);
    return was_alone;
}

START_TEST(runs_obey)
{
    grt_session *both;
    sem_init(&begun, 0, 0);
    sem_init(&go_on, 0, 0);
    open_session(&both);
    ck_assert(!alone_beside_another(both));
    OK(grt_runtime_set_threads(runtime, 2));
#ifdef _OPENMP
    ck_assert(alone_beside_another(both));
#endif
    run_once(both); /* the first has given its threads back */
    ck_assert(!was_alone);
    OK(grt_runtime_set_threads(runtime, 4));
    ck_assert(!alone_beside_another(both));
    REFUSED(grt_runtime_set_threads(runtime, -1), "from 0 to 1024");
    REFUSED(grt_runtime_set_threads(NULL, 1), "runtime is NULL");
    grt_session_release(both);
}
END_TEST

UNIT_SUITE(test_thread_share, runtime_open, runtime_close, grants_stay_within_the_limit, runs_obey)
