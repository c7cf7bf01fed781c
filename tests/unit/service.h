/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of pools share: two models, pools of them, and requests. */
#ifndef GRT_TESTS_SERVICE_H
#define GRT_TESTS_SERVICE_H

#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <stdatomic.h>

enum { SERVICE_LONG_MS = 20000, SERVICE_MOST_CALLS = 64 };

void service_sleep_ms(int ms);

/* ---- models and pools ---- */

grt_model *service_open(onnx_model *m); /* releases m */
/* y = x doubled `trips` times */
grt_model *service_open_loop(void);
/* y [N,3] = table[index [N]] + x [N,3]; an index of 9 or more is refused */
grt_model *service_open_rows(void);
/* Both take the model. */
grt_pool *service_open_pool(grt_model *model, const char *device, const grt_pool_options *options);
size_t service_add_lane(grt_pool *pool, grt_model *model, const char *device,
                        const grt_pool_options *options);
/* One context for the loop, and room for three requests, on devices[i]. */
grt_pool *service_open_small(int i);

/* graphrun, of processes of a pool. */
const char *service_program(void);

/* ---- requests of the loop ---- */

/* Trips. After three, y is 8. */
extern const int64_t service_for_ever, service_three;

typedef struct loop_call {
    grt_tensor in[2];
    grt_submission s;
} loop_call;

loop_call *service_loop_of(loop_call *c, const int64_t *trips);
grt_request *service_submit(grt_pool *pool, const grt_submission *s);
grt_request *service_run_loop(grt_pool *pool, const int64_t *trips);
/* At work, so that nothing else is. */
grt_request *service_block(grt_pool *pool);
/* Waits for the request and releases it. */
void service_expect(grt_request *r, grt_status expected);

/* ---- callbacks ---- */

/* How many there were, and what `user` was, in their order. */
extern atomic_int service_n_called;
extern intptr_t service_called[SERVICE_MOST_CALLS];
/* A request that is noted there when it is done. */
void service_call_back(grt_pool *pool, const int64_t *trips, size_t lane, int priority, intptr_t user);

#endif
