/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files: a round trip keeps everything; invalid files are refused with the faulty part named. */
#define _GNU_SOURCE /* memmem */
#include "src/algos/db.h"
#include "src/plan/dims.h"
#include "tests/unit/files.h"
#include "tests/unit/plan_sample.h"

#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[FILES_NAME], path[FILES_NAME + 16];

static void make_directory(void)
{
    files_directory(directory);
    snprintf(path, sizeof path, "%s/sample.grt", directory);
}

static void remove_directory(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(directory), 0); /* empty: nothing else was left behind */
}

static file sample_file(bool external)
{
    grt_plan *plan = plan_sample();
    ck_assert_ptr_nonnull(plan);
    ck_assert_msg(plan_check("sample", plan) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(grt_plan_write(plan, path, external, NULL) == GRT_OK, "%s", grt_last_error());
    grt_plan_release(plan);
    return files_read(path);
}

static void assert_refused(file f, const char *expected)
{
    grt_plan *plan = NULL;
    grt_status status = grt_plan_read(path, f.data, f.size, &plan);
    ck_assert_int_eq(status, GRT_STATUS_INVALID_PLAN);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(grt_last_error(), expected) != NULL, "'%s' not in: %s", expected, grt_last_error());
}

static void assert_same_ints(const int32_t *a, const int32_t *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        ck_assert_int_eq(a[i], b[i]);
}

static void assert_same_string(grt_string a, grt_string b)
{
    ck_assert_uint_eq(a.size, b.size);
    ck_assert_mem_eq(a.data, b.data, a.size);
    ck_assert_int_eq(a.data[a.size], 0);
}

static void assert_same_tensor(const grt_tensor *a, const grt_tensor *b)
{
    ck_assert(grt_tensor_same_type(a, b));
    ck_assert_ptr_nonnull(a->data);
    int64_t n = grt_tensor_elements(a);
    if (a->dtype != GRT_DTYPE_STRING && n)
        ck_assert_mem_eq(a->data, b->data, grt_tensor_bytes(a));
    for (int64_t i = 0; a->dtype == GRT_DTYPE_STRING && i < n; i++)
        assert_same_string(((grt_string *)a->data)[i], ((grt_string *)b->data)[i]);
}

static void assert_same_attribute(const grt_attr *a, const grt_attr *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert_int_eq(a->kind, b->kind);
    switch (a->kind) {
    case GRT_ATTR_INT:
        ck_assert(a->i == b->i);
        break;
    case GRT_ATTR_FLOAT:
        ck_assert(a->f == b->f);
        break;
    case GRT_ATTR_STRING:
        assert_same_string(a->s, b->s);
        break;
    case GRT_ATTR_TENSOR:
        assert_same_tensor(a->t, b->t);
        break;
    case GRT_ATTR_INTS:
        ck_assert_uint_eq(a->ints.n, b->ints.n);
        for (size_t i = 0; i < a->ints.n; i++)
            ck_assert(a->ints.v[i] == b->ints.v[i]);
        break;
    case GRT_ATTR_FLOATS:
        ck_assert_uint_eq(a->floats.n, b->floats.n);
        for (size_t i = 0; i < a->floats.n; i++)
            ck_assert(a->floats.v[i] == b->floats.v[i]);
        break;
    case GRT_ATTR_STRINGS:
        ck_assert_uint_eq(a->strings.n, b->strings.n);
        for (size_t i = 0; i < a->strings.n; i++)
            assert_same_string(a->strings.v[i], b->strings.v[i]);
        break;
    case GRT_ATTR_GRAPH:
        ck_assert(a->body == b->body);
        break;
    case GRT_ATTR_TYPE:
        ck_assert(a->type.kind == b->type.kind && a->type.dtype == b->type.dtype);
        break;
    }
}

static void assert_same_step(const grt_plan_step *a, const grt_plan_step *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_str_eq(a->desc.domain, b->desc.domain);
    ck_assert_str_eq(a->desc.op, b->desc.op);
    ck_assert_str_eq(a->desc.name, b->desc.name);
    ck_assert_uint_eq(a->desc.n_attrs, b->desc.n_attrs);
    for (size_t i = 0; i < a->desc.n_attrs; i++)
        assert_same_attribute(&a->desc.attrs[i], &b->desc.attrs[i]);
    ck_assert(a->n_in == b->n_in && a->n_out == b->n_out && a->n_bodies == b->n_bodies);
    assert_same_ints(a->in, b->in, a->n_in);
    assert_same_ints(a->out, b->out, a->n_out);
    assert_same_ints(a->bodies, b->bodies, a->n_bodies);
    ck_assert(a->is_static == b->is_static && a->flops == b->flops);
}

static void assert_same_value(const grt_plan_value *a, const grt_plan_value *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert(a->role == b->role && a->kind == b->kind && a->element_kind == b->element_kind &&
              a->dtype == b->dtype);
    ck_assert(a->rank == b->rank && a->weight == b->weight && a->is_static == b->is_static);
    assert_same_ints(a->dims, b->dims, a->rank);
}

static void assert_same_body(const grt_plan_body *a, const grt_plan_body *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert(a->n_values == b->n_values && a->n_steps == b->n_steps && a->parent == b->parent);
    ck_assert(a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs && a->n_captures == b->n_captures);
    for (int32_t i = 0; i < a->n_values; i++)
        assert_same_value(&a->values[i], &b->values[i]);
    for (int32_t i = 0; i < a->n_steps; i++)
        assert_same_step(&a->steps[i], &b->steps[i]);
    assert_same_ints(a->inputs, b->inputs, a->n_inputs);
    assert_same_ints(a->outputs, b->outputs, a->n_outputs);
    assert_same_ints(a->captures_outer, b->captures_outer, a->n_captures);
    assert_same_ints(a->captures_inner, b->captures_inner, a->n_captures);
}

static void assert_same_plan(const grt_plan *a, const grt_plan *b)
{
    ck_assert(a->n_bodies == b->n_bodies && a->n_weights == b->n_weights && a->n_dims == b->n_dims);
    ck_assert(a->opset == b->opset && a->source_nodes == b->source_nodes && a->parameters == b->parameters);
    ck_assert(a->arena_bytes == b->arena_bytes && a->flops == b->flops && a->n_symbols == b->n_symbols);
    ck_assert_str_eq(a->producer, b->producer);
    ck_assert_str_eq(a->options, b->options);
    ck_assert_str_eq(a->target, b->target);
    for (int32_t i = 0; i < a->n_symbols; i++)
        ck_assert_str_eq(a->symbols[i], b->symbols[i]);
    ck_assert_mem_eq(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims);
    for (int32_t i = 0; i < a->n_weights; i++)
        assert_same_tensor(&a->weights[i], &b->weights[i]);
    for (int32_t i = 0; i < a->n_bodies; i++)
        assert_same_body(&a->bodies[i], &b->bodies[i]);
    ck_assert_uint_eq(a->n_choices, b->n_choices);
    for (size_t i = 0; i < a->n_choices; i++) {
        const grt_choice *x = &a->choices[i], *y = &b->choices[i];
        ck_assert_str_eq(x->key, y->key);
        ck_assert(x->size == y->size && x->source == y->source && x->cost_ms == y->cost_ms);
        ck_assert_mem_eq(x->data, y->data, x->size);
    }
}

static void assert_reads_back(file f)
{
    grt_plan *plan = NULL, *expected = plan_sample();
    ck_assert_msg(grt_plan_read(path, f.data, f.size, &plan) == GRT_OK, "%s", grt_last_error());
    assert_same_plan(plan, expected);
    for (int32_t i = 0; i < plan->n_weights; i++)
        if (plan->weights[i].dtype != GRT_DTYPE_STRING)
            ck_assert_uint_eq((uintptr_t)plan->weights[i].data % 64, 0);
    ck_assert_ptr_eq(plan->weights[0].data, plan->weights[1].data); /* equal bytes are stored once */
    grt_plan_release(plan);
    grt_plan_release(expected);
}

START_TEST(round_trip)
{
    file f = sample_file(false);
    assert_reads_back(f);
    free(f.data);
}
END_TEST

/* The one weights file of the plans called `base` in the directory. */
static void find_weights(const char *base, char out_path[2 * FILES_NAME])
{
    char pattern[2 * FILES_NAME];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/%s.????????????????.weights", directory, base);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    snprintf(out_path, 2 * FILES_NAME, "%s", found.gl_pathv[0]);
    globfree(&found);
}

START_TEST(external_weights)
{
    file f = sample_file(true);
    assert_reads_back(f);
    char beside[2 * FILES_NAME];
    find_weights("sample.grt", beside);
    struct stat st;
    ck_assert_int_eq(stat(beside, &st), 0);

    file w = files_read(beside);
    FILE *out = fopen(beside, "r+b"); /* one byte changed */
    fputc(w.data[0] ^ 1, out);
    fclose(out);
    assert_refused(f, "checksum");
    ck_assert_int_eq(truncate(beside, st.st_size - 1), 0);
    assert_refused(f, "expected");
    char elsewhere[FILES_NAME + 16];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", directory);
    ck_assert_int_eq(rename(beside, elsewhere), 0);
    ck_assert_int_eq(symlink(elsewhere, beside), 0);
    grt_plan *plan = NULL;
    ck_assert_int_eq(grt_plan_read(path, f.data, f.size, &plan), GRT_STATUS_IO);
    unlink(beside);
    unlink(elsewhere);
    ck_assert_int_eq(grt_plan_read(path, f.data, f.size, &plan), GRT_STATUS_IO);
    ck_assert_int_eq(mkdir(beside, 0700), 0);
    assert_refused(f, "regular file");
    rmdir(beside);
    free(f.data);
    free(w.data);
}
END_TEST

/* Plans of the same name have weights of their own; those that no plan needs any more are removed. */
START_TEST(external_weights_are_replaced)
{
    char first[2 * FILES_NAME], second[2 * FILES_NAME], other[2 * FILES_NAME], user[2 * FILES_NAME];
    file f = sample_file(true);
    find_weights("sample.grt", first);
    snprintf(other, sizeof other, "%s/copy.plan", directory); /* another plan that needs them */
    snprintf(user, sizeof user, "%s/sample.grt.weights", directory);
    files_write(other, f.data, f.size);
    files_write(user, "mine", 4);
    grt_plan *plan = plan_sample(), *read;
    float changed[64] = {42};
    grt_tensor weights[16], *w = &weights[0];
    memcpy(weights, plan->weights, (size_t)plan->n_weights * sizeof *weights);
    ck_assert_uint_le(grt_tensor_bytes(w), sizeof changed);
    w->data = changed;
    plan->weights = weights;
    ck_assert_msg(grt_plan_write(plan, path, true, NULL) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(grt_plan_read(other, f.data, f.size, &read) == GRT_OK, "%s", grt_last_error());
    grt_plan_release(read);
    unlink(first);
    find_weights("sample.grt", second);
    ck_assert_str_ne(first, second);
    unlink(other);
    changed[0] = 43;
    ck_assert_int_eq(grt_plan_write(plan, path, true, NULL), GRT_OK); /* nobody needs the second any more */
    find_weights("sample.grt", first);
    ck_assert_str_ne(first, second);
    ck_assert_int_eq(access(user, F_OK), 0);
    ck_assert_int_eq(grt_plan_write(plan, path, true, NULL), GRT_OK); /* the same again */
    free(f.data);
    f = files_read(path);
    ck_assert_msg(grt_plan_read(path, f.data, f.size, &read) == GRT_OK, "%s", grt_last_error());
    ck_assert_mem_eq(read->weights[0].data, changed, grt_tensor_bytes(w));
    grt_plan_release(read);
    grt_plan_release(plan);
    unlink(first);
    unlink(user);
    free(f.data);
}
END_TEST

/* A lock on the directory by another process does not keep the writer from writing. */
START_TEST(a_directory_that_stays_locked)
{
    char first[2 * FILES_NAME];
    const int fd = open(directory, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    file f = sample_file(true);
    assert_reads_back(f);
    close(fd);
    find_weights("sample.grt", first);
    unlink(first);
    free(f.data);
}
END_TEST

/* The reader takes whatever name META has: older versions left the checksum out. */
START_TEST(weights_of_any_name)
{
    char beside[2 * FILES_NAME], renamed[2 * FILES_NAME];
    file f = sample_file(true);
    find_weights("sample.grt", beside);
    const char *base = strrchr(beside, '/') + 1;
    char *at = memmem(f.data, f.size, base, strlen(base));
    ck_assert_ptr_nonnull(at);
    memset(at, 'w', strlen(base)); /* as long as it was, so that nothing moves */
    plan_reseal(f.data, f.size);
    snprintf(renamed, sizeof renamed, "%s/%.*s", directory, (int)strlen(base), at);
    ck_assert_int_eq(rename(beside, renamed), 0);
    assert_reads_back(f);
    unlink(renamed);
    free(f.data);
}
END_TEST

START_TEST(same_plan_same_bytes)
{
    file a = sample_file(false), b = sample_file(false);
    ck_assert_uint_eq(a.size, b.size);
    ck_assert_mem_eq(a.data, b.data, a.size);
    free(a.data);
    free(b.data);
}
END_TEST

START_TEST(nothing_stays_of_a_failed_write)
{
    grt_plan *plan = plan_sample();
    char name[100];
    snprintf(name, sizeof name, "%s/no/such/directory.grt", directory);
    ck_assert_int_eq(grt_plan_write(plan, name, false, NULL), GRT_STATUS_IO);
    ck_assert(strstr(grt_last_error(), name) != NULL);
    snprintf(name, sizeof name, "%s/taken", directory); /* a directory cannot be replaced by a file */
    ck_assert_int_eq(mkdir(name, 0700), 0);
    ck_assert_int_eq(grt_plan_write(plan, name, false, NULL), GRT_STATUS_IO);
    ck_assert_int_eq(rmdir(name), 0);
    ck_assert_int_eq(rmdir(directory), 0); /* empty: no temporary file is left */
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    grt_plan_release(plan);
}
END_TEST

/* The next writer in a directory removes temporary files of killed writers and keeps those of living ones. */
START_TEST(temporaries_that_were_left)
{
    char left[2 * FILES_NAME], busy[2 * FILES_NAME];
    snprintf(left, sizeof left, "%s/.graphrt.tmp-1-0", directory);
    snprintf(busy, sizeof busy, "%s/.graphrt.tmp-1-1", directory);
    files_write(left, "torn", 4);
    files_write(busy, "half", 4);
    const int fd = open(busy, O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    free(sample_file(false).data);
    ck_assert_int_ne(access(left, F_OK), 0);
    ck_assert_int_eq(access(busy, F_OK), 0);
    close(fd);
    free(sample_file(false).data);
    ck_assert_int_ne(access(busy, F_OK), 0);
}
END_TEST

START_TEST(every_truncation)
{
    file f = sample_file(false);
    size_t size = f.size;
    for (f.size = 0; f.size < size; f.size++)
        assert_refused(f, f.size == 0 ? "magic" : "truncated");
    f.size = size + 1; /* files_read left room */
    assert_refused(f, "bytes follow");
    free(f.data);
}
END_TEST

START_TEST(every_flipped_byte)
{
    file f = sample_file(false);
    for (size_t i = 0; i < f.size; i++) {
        f.data[i] ^= 0x40;
        assert_refused(f, path);
        f.data[i] ^= 0x40;
    }
    assert_reads_back(f);
    free(f.data);
}
END_TEST

START_TEST(headers)
{
    file f = sample_file(false);
    plan_header good, *h = (plan_header *)f.data;
    good = *h;
#define EXPECT(change, message)                 \
    change;                                     \
    h->checksum = plan_header_checksum(f.data); \
    assert_refused(f, message);                 \
    *h = good
    EXPECT(h->magic[0] = 'x', "magic");
    EXPECT(h->version = 2, "newer libgraphrt");
    EXPECT(h->version = 0, "version 0");
    EXPECT(h->flags = 1, "flags");
    EXPECT(h->n_sections = 0, "0 sections");
    EXPECT(h->n_sections = UINT32_MAX, "sections, expected 1 to 64");
    EXPECT(h->n_sections = 1, "sections end");
    EXPECT(h->n_sections = 2, "sections end");
    EXPECT(h->sections[0].kind = 99, "kind 99");
    EXPECT(h->sections[0].kind = PLAN_KERNELS, "META is missing");
    EXPECT(h->sections[1].kind = PLAN_META, "a second one");
    EXPECT(h->sections[0].offset = 8192, "offset expected 4096");
    EXPECT(h->sections[1].offset = UINT64_MAX - 4095, "offset expected");
    EXPECT(h->sections[0].length = UINT64_MAX, "but the file has");
    EXPECT(h->sections[2].length += 4096, "but the file has");
    EXPECT(h->sections[2].length -= 1, "sections end");
    EXPECT(h->sections[1].kind = PLAN_TUNING, "section TUNING at offset 12288: a second one");
    EXPECT(h->sections[2].checksum ^= 1, "section TUNING");
    EXPECT(h->sections[0].checksum ^= 1, "section META at offset 4096");
    EXPECT(h->sections[1].checksum ^= 1, "section WEIGHTS");
    EXPECT(h->checksum = 0; h->sections[0].length = 0; plan_reseal(f.data, f.size), "expected"); /* padding */
    assert_reads_back(f);
    free(f.data);
}
END_TEST

/* Every byte of a section, changed to every `step`th value. How many of them were refused. */
static int change_bytes(file f, const plan_section *section, int step)
{
    const size_t begin = (size_t)section->offset, end = begin + (size_t)section->length;
    int refused = 0;
    for (size_t i = begin; i < end; i++) {
        char original = f.data[i];
        for (int k = 0; k < 256; k += step) {
            f.data[i] = (char)k;
            plan_reseal(f.data, f.size);
            grt_plan *plan = NULL;
            grt_status status = grt_plan_read(path, f.data, f.size, &plan);
            ck_assert(status == GRT_OK || status == GRT_STATUS_INVALID_PLAN || status == GRT_STATUS_IO);
            refused += status != GRT_OK;
            grt_plan_release(plan);
        }
        f.data[i] = original;
    }
    return refused;
}

/* Sections with right checksums and changed content: valid or refused, never a crash. */
START_TEST(resealed_changes)
{
    file f = sample_file(false);
    const plan_header *h = (const plan_header *)f.data;
    int refused = change_bytes(f, &h->sections[0], 5);
    ck_assert_int_gt(refused, 0);
    refused = change_bytes(f, &h->sections[2], 1);
    ck_assert_int_gt(refused, 0);
    free(f.data);
}
END_TEST

/* One wrong field at a time, through the checker. */
START_TEST(wrong_structures)
{
    grt_plan *plan = plan_sample();
    grt_plan good = *plan;
    grt_plan_body bodies[4];
    grt_plan_value values[16];
    grt_plan_step steps[3];
    grt_dim_expr dims[8];
    grt_tensor weights[8];
    int32_t ids[8];
#define EXPECT_BAD(change, message)                                                              \
    do {                                                                                         \
        *plan = good;                                                                            \
        memcpy(bodies, good.bodies, sizeof bodies);                                              \
        memcpy(values, good.bodies[0].values, (size_t)good.bodies[0].n_values * sizeof *values); \
        memcpy(steps, good.bodies[0].steps, sizeof steps);                                       \
        memcpy(dims, good.dims, (size_t)good.n_dims * sizeof *dims);                             \
        memcpy(weights, good.weights, (size_t)good.n_weights * sizeof *weights);                 \
        plan->bodies = bodies;                                                                   \
        plan->dims = dims;                                                                       \
        plan->weights = weights;                                                                 \
        bodies[0].values = values;                                                               \
        bodies[0].steps = steps;                                                                 \
        change;                                                                                  \
        ck_assert_int_eq(plan_check("p.grt", plan), GRT_STATUS_INVALID_PLAN);                    \
        ck_assert_msg(strstr(grt_last_error(), message) != NULL, "'%s' not in: %s", message,     \
                      grt_last_error());                                                         \
    } while (0)
    static const grt_packing flag_packed[6] = {[5] = {"panels16", 64}},
                             copy_packed[6] = {[1] = {"panels16", 64}};
    EXPECT_BAD(plan->packings = flag_packed, "does not fit weight 5"); /* the executor reads defaults */
    EXPECT_BAD((plan->packings = copy_packed, steps[1].in = (ids[0] = 3, ids)), "only kernels read packed");
    EXPECT_BAD(plan->n_bodies = 0, "no main body");
    EXPECT_BAD(bodies[0].parent = 0, "no main body");
    EXPECT_BAD(bodies[1].parent = 2, "belongs to body 2");
    EXPECT_BAD(plan->n_bodies = 3, "body 3");
    EXPECT_BAD(bodies[1].captures_outer = (ids[0] = 7, ids[0] = 8, ids), "captures value 8");
    EXPECT_BAD(dims[4].a = 4, "must come before");
    EXPECT_BAD(dims[4].op = (grt_dim_op)77, "operation 77");
    EXPECT_BAD(dims[3].value = 1, "symbol 1");
    EXPECT_BAD(values[0].role = (grt_plan_value_role)9, "role 9");
    EXPECT_BAD(values[0].kind = (grt_kind)4, "kind 4");
    EXPECT_BAD(values[0].dtype = GRT_DTYPE_NONE, "dtype 0");
    EXPECT_BAD(values[0].dtype = GRT_DTYPE_COUNT, "dtype 27");
    EXPECT_BAD(values[0].rank = 17, "rank 17");
    EXPECT_BAD(values[0].rank = -1, "known rank");
    EXPECT_BAD(values[0].dims = (ids[0] = 0, ids[1] = 6, ids), "expression 6");
    EXPECT_BAD(values[2].weight = 6, "weight 6");
    EXPECT_BAD(values[2].weight = -1, "has no weight");
    EXPECT_BAD(values[2].weight = 1, "does not fit weight 1");
    EXPECT_BAD(weights[0].dims[0] = 5, "does not fit weight 0");
    EXPECT_BAD(values[1].weight = 0, "does not fit weight 0");
    EXPECT_BAD(values[6].role = GRT_VALUE_INPUT, "not listed");
    EXPECT_BAD(bodies[0].inputs = (ids[0] = 0, ids[1] = 0, ids), "listed twice");
    EXPECT_BAD(bodies[0].outputs = (ids[0] = 99, ids[1] = 0, ids), "made by no step");
    EXPECT_BAD(steps[0].in = (memcpy(ids, good.bodies[0].steps[0].in, 6 * sizeof *ids), ids[0] = 9, ids),
               "value 9");
    EXPECT_BAD(steps[0].in = (memcpy(ids, good.bodies[0].steps[0].in, 6 * sizeof *ids), ids[0] = 7, ids),
               "before it is made");
    EXPECT_BAD(steps[1].out = (ids[0] = 6, ids), "made twice");
    /* Its second input is missing. */
    EXPECT_BAD((steps[0].desc = (grt_op_desc){"", "Sum", "sum1", NULL, 0}, steps[0].n_out = 1),
               "must have its first 6 inputs");
    EXPECT_BAD(steps[1].n_out = 0, "a view has");
    /* Views that are parts: 7 and 8 are values that steps make, 2 is the dim 4. */
    EXPECT_BAD((steps[1].n_out = 2, steps[1].out = (ids[0] = 7, ids[1] = -1, ids)), "has all its outputs");
#define PARTS(kind_of_8, rank_of_8)                                                                \
    (steps[1].n_out = 2, steps[1].is_static = values[7].is_static = false,                         \
     steps[1].out = (ids[0] = 7, ids[1] = 8, ids), values[7].rank = 2, values[8].rank = rank_of_8, \
     values[8].kind = kind_of_8, values[7].dims = values[8].dims = (ids[2] = ids[3] = 2, ids + 2))
    EXPECT_BAD(PARTS(GRT_KIND_OPTIONAL, 2), "output 1 is no range");
    EXPECT_BAD(PARTS(GRT_KIND_TENSOR, -1), "output 1 is no range");
    EXPECT_BAD((PARTS(GRT_KIND_TENSOR, 2), values[7].rank = 1), "output 1 is no range"); /* not aligned */
    EXPECT_BAD((PARTS(GRT_KIND_TENSOR, 2), ids[2] = 4), "output 0 is no range");         /* not constant */
    EXPECT_BAD(PARTS(GRT_KIND_TENSOR, 2), "the parts have 128 bytes");
#undef PARTS
    EXPECT_BAD(steps[2].n_bodies = 1, "do not fit together");
    EXPECT_BAD(steps[2].bodies = (ids[0] = 1, ids[1] = 1, ids), "two owners");
    EXPECT_BAD(steps[2].is_static = true, "planned before the run");
    EXPECT_BAD(steps[2].kind = (grt_step_kind)42, "kind 42");
    EXPECT_BAD((steps[1].kind = GRT_STEP_KERNEL, steps[1].desc.op = "Identity", steps[1].n_in = 0),
               "expected 1 to 1");
    /* Whatever is known of dims: no kernel is made of these. */
    static const int64_t most = INT64_MAX, least = -INT64_MAX, one = 1;
    const grt_attr pool[] = {{.name = "kernel_shape", .kind = GRT_ATTR_INTS, .ints = {&one, 1}},
                             {.name = "dilations", .kind = GRT_ATTR_INTS, .ints = {&least, 1}},
                             {.name = "pads", .kind = GRT_ATTR_INTS, .ints = {&most, 1}}};
#define STEP(name, attributes, n) \
    (steps[1].kind = GRT_STEP_KERNEL, steps[1].desc = (grt_op_desc){"", name, "p", attributes, n})
    EXPECT_BAD(STEP("MaxPool", pool, 2),
               "body 0 'main': MaxPool node 'p': attribute dilations has the value -9223372036854775807 at "
               "index 0; it must lie in [1, 2147483647]");
    EXPECT_BAD((STEP("MaxPool", pool, 3), steps[1].desc.attrs = (const grt_attr[]){pool[0], pool[2]},
                steps[1].desc.n_attrs = 2),
               "attribute pads has the value 9223372036854775807 at index 0");
#undef STEP
    *plan = good;
    grt_plan_release(plan);
}
END_TEST

/* Kernels take -1 for a size that is not known, and no other negative number. */
START_TEST(sizes_that_there_are_not)
{
    grt_plan *plan = plan_sample();
    grt_plan_dims symbols;
    grt_dim_expr dims[8];
    const grt_dim_expr *good = plan->dims;
    enum { HIDDEN = 6, DIM_4 = 2 };
    memcpy(dims, good, (size_t)plan->n_dims * sizeof *dims);
    dims[DIM_4].value = -3;
    plan->dims = dims;
    ck_assert_int_eq(grt_plan_dims_make(plan, &(int64_t){5}, &symbols), GRT_OK);
    const grt_tensor open = grt_plan_describe(plan, &plan->bodies[0], HIDDEN, NULL),
                     given = grt_plan_describe(plan, &plan->bodies[0], HIDDEN, &symbols);
    ck_assert_int_eq(open.dims[0], -1);
    ck_assert_int_eq(open.dims[1], -1);
    ck_assert_int_eq(given.dims[0], 5);
    ck_assert_int_eq(given.dims[1], -1);
    grt_plan_dims_release(&symbols);
    plan->dims = good;
    grt_plan_release(plan);
}
END_TEST

Suite *suite_test_plan(void)
{
    Suite *suite = suite_create("plan");
    TCase *tc = tcase_create("plan");
    tcase_add_checked_fixture(tc, make_directory, remove_directory);
    tcase_add_test(tc, round_trip);
    tcase_add_test(tc, external_weights);
    tcase_add_test(tc, external_weights_are_replaced);
    tcase_add_test(tc, a_directory_that_stays_locked);
    tcase_add_test(tc, weights_of_any_name);
    tcase_add_test(tc, same_plan_same_bytes);
    tcase_add_test(tc, nothing_stays_of_a_failed_write);
    tcase_add_test(tc, temporaries_that_were_left);
    tcase_add_test(tc, every_truncation);
    tcase_add_test(tc, every_flipped_byte);
    tcase_add_test(tc, headers);
    tcase_add_test(tc, resealed_changes);
    tcase_add_test(tc, wrong_structures);
    tcase_add_test(tc, sizes_that_there_are_not);
    suite_add_tcase(suite, tc);
    return suite;
}
