/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: which backends are listed, and that an incomplete one is refused with the name of what it
 * lacks. */
#include "backends/registry.h"
#include "tests/mirror/mirror.h"
#include "tests/unit/tables.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(listed)
{
    bool cpu = false, mirror = false;
    for (size_t i = 0; grt_backend_name(i); i++) {
        cpu = cpu || !strcmp(grt_backend_name(i), "cpu");
        mirror = mirror || !strcmp(grt_backend_name(i), "mirror");
    }
    ck_assert(cpu && !mirror);
    ck_assert_ptr_eq(grt_backend_find("cpu"), &grt_backend_cpu);
    ck_assert_ptr_eq(grt_backend_find("mirror"), &grt_backend_mirror); /* the program registered it */
}
END_TEST

START_TEST(unknown_names)
{
    static const char *const names[] = {"", "cpx", "../cpu", "cpu:0", "a/../../tmp/x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_ptr_null(grt_backend_find(names[i]));
        ck_assert_msg(strstr(grt_last_error(), "there is no device kind '") &&
                          strstr(grt_last_error(), "there are: cpu, null, "),
                      "%s", grt_last_error());
    }
}
END_TEST

START_TEST(one_of_a_name)
{
    ck_assert_int_eq(grt_backend_register(&grt_backend_mirror), GRT_STATUS_INTERNAL);
    ck_assert_str_eq(grt_last_error(), "there are two backends 'mirror'");
}
END_TEST

static grt_device_api api;

static grt_backend with_api(void)
{
    grt_backend made = grt_backend_mirror;
    api = *made.api;
    made.name = "made";
    made.api = &api;
    return made;
}

static void refused(const grt_backend *backend, const char *text)
{
    ck_assert_int_eq(grt_backend_check(backend), GRT_STATUS_INTERNAL);
    ck_assert_msg(strstr(grt_last_error(), text), "%s; wanted: %s", grt_last_error(), text);
    ck_assert_int_eq(grt_backend_register(backend), GRT_STATUS_INTERNAL);
    ck_assert_ptr_null(grt_backend_find(backend->name));
}

typedef void (*function)(void);

/* Some address for every function of a table; none of them is called. */
static void fill(void *table, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(function); i++) {
        const function f = (function)abort;
        memcpy((char *)table + i * sizeof f, &f, sizeof f);
    }
}

/* Each function of the table is left out once: the message names it, and each by another name. */
#define REFUSE_PARTS(noun)                                                             \
    do {                                                                               \
        grt_backend made = with_api();                                                 \
        char said[8][256] = {{0}};                                                     \
        const size_t n = sizeof tables.noun / sizeof(function);                        \
        for (size_t left_out = 0; left_out < n; left_out++) {                          \
            const function none = NULL;                                                \
            fill(&tables.noun, sizeof tables.noun);                                    \
            memcpy((char *)&tables.noun + left_out * sizeof none, &none, sizeof none); \
            api.noun = (const void *)&tables.noun;                                     \
            refused(&made, "backend 'made' has a table of " #noun " without '");       \
            ck_assert_int_ne(grt_backend_check(&made), GRT_OK);                        \
            strncpy(said[left_out], grt_last_error(), sizeof said[0] - 1);             \
            ck_assert(!strstr(said[left_out], "(null)"));                              \
            for (size_t i = 0; i < left_out; i++)                                      \
                ck_assert_str_ne(said[i], said[left_out]);                             \
        }                                                                              \
        fill(&tables.noun, sizeof tables.noun);                                        \
        ck_assert_msg(grt_backend_check(&made) == GRT_OK, "%s", grt_last_error());     \
    } while (0)

START_TEST(tables_are_complete)
{
    static device_tables tables;
    REFUSE_PARTS(memory);
    REFUSE_PARTS(copies);
    REFUSE_PARTS(streams);
    REFUSE_PARTS(current);
    REFUSE_PARTS(fences);
    REFUSE_PARTS(graphs);
    REFUSE_PARTS(peers);
    REFUSE_PARTS(pinned);
    REFUSE_PARTS(timer);
    REFUSE_PARTS(locals);
}
END_TEST

START_TEST(names_are_those_of_the_functions)
{
    grt_stream_api streams = *grt_backend_mirror.api->streams;
    grt_backend made = with_api();
    streams.wait = NULL;
    api.streams = &streams;
    refused(&made, "a table of streams without 'wait'; a table is complete or absent");
}
END_TEST

START_TEST(what_goes_together)
{
    grt_backend made = with_api();
    ck_assert_msg(grt_backend_check(&made) == GRT_OK, "%s", grt_last_error());
    api.memory = NULL;
    refused(&made, "devices without memory");
    made = with_api();
    api.streams = NULL;
    refused(&made, "copies, which want streams");
    made = with_api();
    api.fences = NULL;
    refused(&made, "peers, which want fences");
    made = with_api();
    api = (grt_device_api){.close = api.close, .memory = api.memory};
    refused(&made, "traits of its own memory, which want copies");
    made.traits.own_memory = false;
    ck_assert_int_eq(grt_backend_check(&made), GRT_OK);
    made.description_api = &api;
    refused(&made, "all or none");
    made = with_api();
    made.find_kernel = NULL;
    refused(&made, "lacks device_count, device_open or find_kernel");
    made.name = "";
    ck_assert_int_eq(grt_backend_check(&made), GRT_STATUS_INTERNAL);
}
END_TEST

/* What every backend of the list offers is complete: those of modules are checked where they are opened. */
START_TEST(ours_are_complete)
{
    for (size_t i = 0; grt_backend_name(i); i++) {
        const grt_backend *backend = grt_backend_find(grt_backend_name(i));
        ck_assert_msg(!backend || grt_backend_check(backend) == GRT_OK, "%s", grt_last_error());
        ck_assert(backend || strstr(grt_last_error(), "module"));
    }
}
END_TEST

START_TEST(absent_tables)
{
    grt_device *device;
    void *handle = &device, *pinned;
    ck_assert_int_eq(grt_backend_cpu.device_open(0, &device), GRT_OK);
    ck_assert(!grt_device_has_fences(device) && !grt_device_has_graphs(device));
    ck_assert(!grt_device_has_timer(device) && !grt_device_peer_can(device, device));
    ck_assert_int_eq(grt_device_fence_create(device, &handle), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_null(handle);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "offers no fences"));
    ck_assert_int_eq(grt_device_graph_begin(device, NULL), GRT_STATUS_UNSUPPORTED);
    ck_assert_int_eq(grt_device_peer_enable(device, device), GRT_STATUS_UNSUPPORTED);
    ck_assert_int_eq(grt_device_event_create(device, &handle), GRT_STATUS_UNSUPPORTED);
    ck_assert_int_eq(grt_device_alloc_pinned(device, 100, &pinned), GRT_OK);
    ck_assert_int_eq(grt_device_pin(device, pinned, 100), GRT_OK);
    grt_device_unpin(device, pinned);
    grt_device_free_pinned(device, pinned);
    ck_assert_int_eq(grt_device_alloc(device, SIZE_MAX, &handle), GRT_STATUS_OUT_OF_MEMORY);
    grt_device_close(device);
}
END_TEST

Suite *suite_test_backend(void)
{
    Suite *suite = suite_create("backend");
    TCase *tc = tcase_create("backend");
    tcase_add_test(tc, listed);
    tcase_add_test(tc, unknown_names);
    tcase_add_test(tc, one_of_a_name);
    tcase_add_test(tc, tables_are_complete);
    tcase_add_test(tc, names_are_those_of_the_functions);
    tcase_add_test(tc, what_goes_together);
    tcase_add_test(tc, ours_are_complete);
    tcase_add_test(tc, absent_tables);
    suite_add_tcase(suite, tc);
    return suite;
}
