/* SPDX-License-Identifier: Apache-2.0 */
/* Choices in plan files: written into an existing plan, replaced and removed, with all else as it was; what
 * no plan can hold is refused, on both sides. */
#include "src/algos/db.h"
#include "src/plan/choices.h"
#include "src/plan/source.h"
#include "tests/unit/files.h"
#include "tests/unit/plan_sample.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[FILES_NAME], path[96], other[96];

static void setup(void)
{
    files_directory(directory);
    snprintf(path, sizeof path, "%s/sample.grt", directory);
    snprintf(other, sizeof other, "%s/other.grt", directory);
}

static void teardown(void)
{
    files_remove(directory);
}

static file write_sample(bool tuning, bool external)
{
    grt_plan *plan = plan_sample();
    if (!tuning)
        plan->n_choices = 0;
    ck_assert_msg(grt_plan_write(plan, path, external, NULL) == GRT_OK, "%s", grt_last_error());
    grt_plan_release(plan);
    return files_read(path);
}

/* "key=data source cost|..." of a plan's rows */
static const char *rows_of(const char *name)
{
    static char text[4096];
    file f = files_read(name);
    grt_plan *plan = NULL;
    ck_assert_msg(grt_plan_read(name, f.data, f.size, &plan) == GRT_OK, "%s", grt_last_error());
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < plan->n_choices; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s=%.*s %d %g|", plan->choices[i].key,
                               (int)plan->choices[i].size, (const char *)plan->choices[i].data,
                               (int)plan->choices[i].source, plan->choices[i].cost_ms);
    grt_plan_release(plan);
    free(f.data);
    return text;
}

static grt_choice row(const char *key, const char *data, int32_t source, double cost)
{
    return (grt_choice){
        .key = key, .data = data, .size = strlen(data), .source = source, .cost_ms = cost, .made = 12345};
}

static void put(const char *from, const char *to, const grt_choice *rows, size_t n)
{
    ck_assert_msg(plan_source_write_choices(from, to, rows, n) == GRT_OK, "%s", grt_last_error());
}

START_TEST(rows_are_added_replaced_and_sorted)
{
    free(write_sample(false, false).data);
    const grt_choice first[] = {row("b;", "two", 1, 0), row("a;", "one", 1, 0), row("b;", "last", 2, 0.5)};
    put(path, other, first, 3);
    ck_assert_str_eq(rows_of(path), "");
    ck_assert_str_eq(rows_of(other), "a;=one 1 0|b;=last 2 0.5|");
    const grt_choice second[] = {row("c;", "", 1, 0), row("a;", "new", 2, 0.125)};
    put(other, other, second, 2);
    ck_assert_str_eq(rows_of(other), "a;=new 2 0.125|b;=last 2 0.5|c;= 1 0|");
    const grt_choice gone[] = {{.key = "b;", .rejected = true}, {.key = "x;", .rejected = true}};
    put(other, other, gone, 2);
    ck_assert_str_eq(rows_of(other), "a;=new 2 0.125|c;= 1 0|");
}
END_TEST

START_TEST(all_else_stays_byte_for_byte)
{
    file plain = write_sample(false, false), back, tuned;
    const grt_choice rows[] = {row("a;", "one", 1, 0), {.key = "a;", .rejected = true}};
    put(path, other, rows, 1);
    tuned = files_read(other);
    ck_assert_uint_gt(tuned.size, plain.size);
    ck_assert_mem_eq(tuned.data + PLAN_PAGE, plain.data + PLAN_PAGE, plain.size - PLAN_PAGE);
    put(other, other, rows + 1, 1); /* without rows it is the plan that it was */
    back = files_read(other);
    ck_assert_uint_eq(back.size, plain.size);
    ck_assert_mem_eq(back.data, plain.data, plain.size);
    free(back.data);
    put(path, path, rows, 1); /* and rows alone make the difference, not the way they came */
    back = files_read(path);
    ck_assert_uint_eq(back.size, tuned.size);
    ck_assert_mem_eq(back.data, tuned.data, tuned.size);
    free(back.data);
    free(plain.data);
    free(tuned.data);
}
END_TEST

START_TEST(the_compiler_writes_the_same_bytes)
{
    file all = write_sample(true, false), again;
    grt_plan *plan = plan_sample();
    free(write_sample(false, false).data);
    put(path, other, plan->choices, plan->n_choices);
    again = files_read(other);
    ck_assert_uint_eq(again.size, all.size);
    ck_assert_mem_eq(again.data, all.data, all.size);
    free(all.data);
    free(again.data);
    grt_plan_release(plan);
}
END_TEST

START_TEST(external_weights_stay_where_they_are)
{
    free(write_sample(false, true).data);
    const grt_choice one = row("a;", "one", 1, 0);
    put(path, other, &one, 1);
    ck_assert_str_eq(rows_of(other), "a;=one 1 0|");
    char elsewhere[160], inside[128];
    snprintf(inside, sizeof inside, "%s/d", directory);
    snprintf(elsewhere, sizeof elsewhere, "%s/p.grt", inside);
    ck_assert_int_eq(mkdir(inside, 0700), 0);
    ck_assert_int_eq(plan_source_write_choices(path, elsewhere, &one, 1), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "same directory"));
    ck_assert_int_ne(access(elsewhere, F_OK), 0);
}
END_TEST

START_TEST(what_no_plan_can_hold)
{
    file before = write_sample(true, false);
    char *huge = calloc(GRT_CHOICE_MAX_DATA + 2, 1);
    memset(huge, 'k', GRT_CHOICE_MAX_KEY + 1);
    const grt_choice bad[] = {
        row("", "x", 1, 0),
        row(huge, "x", 1, 0),
        row("k;", "x", 0, 0),
        row("k;", "x", 3, 0),
        row("k;", "x", 1, -1),
        row("k;", "x", 1, (double)INFINITY),
        {.key = "k;", .data = huge, .size = GRT_CHOICE_MAX_DATA + 1, .source = 1},
        {.key = "k;", .size = 1, .source = 1},
        {.key = NULL, .data = "x", .size = 1, .source = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(plan_source_write_choices(path, path, &bad[i], 1), GRT_STATUS_INVALID_ARGUMENT);
        file after = files_read(path);
        ck_assert_uint_eq(after.size, before.size);
        ck_assert_mem_eq(after.data, before.data, before.size);
        free(after.data);
    }
    const grt_choice one = row("k;", "x", 1, 0);
    ck_assert_int_eq(plan_source_write_choices(other, path, &one, 1), GRT_STATUS_IO);
    ck_assert_int_eq(plan_source_write_choices(directory, path, &one, 1), GRT_STATUS_IO);
    ck_assert_int_eq(plan_source_write_choices("/dev/null", path, &one, 1), GRT_STATUS_IO);
    files_write(other, "no plan", 7);
    ck_assert_int_eq(plan_source_write_choices(other, path, &one, 1), GRT_STATUS_INVALID_PLAN);
    free(huge);
    free(before.data);
}
END_TEST

/* Sections that other software made, with right checksums. */
static void expect_section(const void *data, size_t size, const char *message)
{
    grt_plan plan = {.arena = grt_arena_create()};
    ck_assert_int_eq(plan_choices_decode("p.grt", data, size, &plan), GRT_STATUS_INVALID_PLAN);
    ck_assert_msg(strstr(grt_last_error(), message) != NULL, "'%s' not in: %s", message, grt_last_error());
    ck_assert_ptr_null(plan.choices);
    grt_arena_release(plan.arena);
}

START_TEST(wrong_sections)
{
#define EXPECT(bytes, message) expect_section(bytes, sizeof(bytes) - 1, message)
    EXPECT("\x0a\xff\xff\xff\xff\x0f", "no valid protobuf message"); /* claims 4 GiB */
    EXPECT("\x0a\x09\x0a\x01", "no valid protobuf message");
    EXPECT("\x0a\x00", "row 0: its key is empty");
    EXPECT("\x0a\x05\x0a\x01\x00\x18\x01", "zero byte");
    EXPECT("\x0a\x05\x0a\x01k\x18\x07", "source is unknown");
    EXPECT("\x0a\x03\x0a\x01k", "source is unknown");
    EXPECT("\x0a\x05\x0a\x01k\x18\x01\x0a\x05\x0a\x01k\x18\x01", "row 1: its key is not above");
    EXPECT("\x0a\x05\x0a\x01k\x18\x01\x0a\x05\x0a\x01j\x18\x01", "row 1: its key is not above");
    EXPECT("\x0a\x0e\x0a\x01k\x18\x01\x21\x00\x00\x00\x00\x00\x00\xf0\xbf", "cost");
    EXPECT("\x0a\x0e\x0a\x01k\x18\x01\x21\x00\x00\x00\x00\x00\x00\xf8\x7f", "cost");
#undef EXPECT
}
END_TEST

UNIT_SUITE(test_plan_choices, setup, teardown, rows_are_added_replaced_and_sorted,
           all_else_stays_byte_for_byte, the_compiler_writes_the_same_bytes,
           external_weights_stay_where_they_are, what_no_plan_can_hold, wrong_sections)
