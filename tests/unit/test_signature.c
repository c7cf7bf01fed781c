/* SPDX-License-Identifier: Apache-2.0 */
/* Signed plans: whoever asks for a key gets what its owner signed, or nothing. */
#define _GNU_SOURCE /* memmem */
#include "src/plan/signature.h"
#include "src/plan/weights_check.h"
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/plan_sample.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[FILES_NAME], path[FILES_NAME + 16];
static char key[GRT_KEY_SIZE], secret[GRT_KEY_SIZE], other_key[GRT_KEY_SIZE], other_secret[GRT_KEY_SIZE];

static void setup(void)
{
    files_directory(directory);
    snprintf(path, sizeof path, "%s/p.grt", directory);
    ck_assert_int_eq(grt_key_create(key, secret), GRT_OK);
    ck_assert_int_eq(grt_key_create(other_key, other_secret), GRT_OK);
    ck_assert_str_ne(key, other_key);
}

static void teardown(void)
{
    files_remove(directory);
}

static file signed_sample(bool external)
{
    grt_plan *plan = plan_sample();
    ck_assert_msg(grt_plan_write(plan, path, external, NULL) == GRT_OK, "%s", grt_last_error());
    grt_plan_release(plan);
    ck_assert_msg(grt_plan_sign(path, path, secret) == GRT_OK, "%s", grt_last_error());
    return files_read(path);
}

static grt_status read_as(file f, const char *trusted, grt_plan **out_plan)
{
    grt_trust trust;
    grt_weights_check *check = NULL;
    ck_assert_msg(grt_trust_parse(trusted, &trust) == GRT_OK, "%s", grt_last_error());
    grt_status status = grt_plan_read_later(path, f.data, f.size, &trust, &check, out_plan);
    ck_assert_ptr_null(check); /* weights are few */
    return status;
}

static void expect(file f, const char *trusted, grt_status wanted, const char *word)
{
    grt_plan *plan = NULL;
    const grt_status status = read_as(f, trusted, &plan);
    ck_assert_msg(status == wanted, "status %d: %s", status, status ? grt_last_error() : "");
    if (status != GRT_OK)
        ck_assert_msg(strstr(grt_last_error(), word) != NULL, "'%s' not in: %s", word, grt_last_error());
    grt_plan_release(plan);
}

START_TEST(who_is_trusted)
{
    char list[3 * GRT_KEY_SIZE];
    grt_plan *plan = NULL;
    file f = signed_sample(false);
    ck_assert_int_eq(read_as(f, key, &plan), GRT_OK);
    ck_assert_str_eq(plan->signer, key);
    ck_assert(plan->verified && !plan->left_out && plan->n_choices == 2);
    grt_plan_release(plan);
    ck_assert_int_eq(read_as(f, "all", &plan), GRT_OK);
    ck_assert_str_eq(plan->signer, key);
    ck_assert(!plan->verified && plan->n_choices == 2);
    grt_plan_release(plan);
    ck_assert_int_eq(read_as(f, "none", &plan), GRT_OK);
    ck_assert(!plan->verified && plan->left_out && plan->n_choices == 0);
    grt_plan_release(plan);
    snprintf(list, sizeof list, "%s,%s", other_key, key);
    expect(f, list, GRT_OK, "");
    expect(f, other_key, GRT_STATUS_UNTRUSTED, key); /* who has signed it instead */
    free(f.data);
    plan = plan_sample();
    ck_assert_int_eq(grt_plan_write(plan, path, false, NULL), GRT_OK);
    grt_plan_release(plan);
    f = files_read(path);
    expect(f, key, GRT_STATUS_UNTRUSTED, "not signed");
    expect(f, "none", GRT_OK, "");
    free(f.data);
}
END_TEST

/* Every byte of every section, with all checksums right again: never opened for a key. */
START_TEST(nothing_can_be_changed)
{
    file f = signed_sample(false);
    plan_header h;
    memcpy(&h, f.data, sizeof h);
    ck_assert_uint_eq(h.n_sections, 4);
    ck_assert_int_eq(h.sections[3].kind, PLAN_SIGNATURE);
    for (uint32_t i = 0; i < h.n_sections; i++)
        for (uint64_t at = h.sections[i].offset; at < h.sections[i].offset + h.sections[i].length; at++) {
            f.data[at] ^= 0x04;
            plan_reseal(f.data, f.size);
            grt_plan *plan = NULL;
            const grt_status status = read_as(f, key, &plan);
            ck_assert_msg(status == GRT_STATUS_UNTRUSTED ||
                              (status == GRT_STATUS_INVALID_PLAN && i == 3 && at < h.sections[3].offset + 8),
                          "section %u, byte %llu: status %d", i, (unsigned long long)at, status);
            f.data[at] ^= 0x04;
        }
    plan_reseal(f.data, f.size);
    expect(f, key, GRT_OK, "");
    free(f.data);
}
END_TEST

/* The table itself: a section that is missing, turned into another kind, or named for another target. */
START_TEST(nothing_can_be_left_out)
{
    file f = signed_sample(false);
    const size_t size = f.size;
    plan_header good, *h = (plan_header *)f.data;
    good = *h;
    const plan_section signature = good.sections[3];
#define EXPECT(change, message)                    \
    change;                                        \
    plan_reseal(f.data, f.size);                   \
    expect(f, key, GRT_STATUS_UNTRUSTED, message); \
    *h = good
    EXPECT(h->sections[2].kind = PLAN_KERNELS, "does not fit");
    EXPECT(h->sections[2].target[0] = 's', "does not fit");
    char *moved = f.data + h->sections[2].offset;
    memmove(moved, f.data + signature.offset, signature.length); /* TUNING goes, SIGNATURE takes its place */
    memset(moved + signature.length, 0, size - (size_t)(moved - f.data) - signature.length);
    f.size = (size_t)(h->sections[2].offset + signature.length);
    EXPECT((h->sections[2] = signature, h->sections[2].offset = good.sections[2].offset, h->n_sections = 3,
            memset(&h->sections[3], 0, sizeof h->sections[3]), h->file_size = f.size),
           "does not fit");
    free(f.data);
}
END_TEST

/* Signed with another digest in place i: as if the checksum of what is there had been made to collide. */
static void sign_wrongly(file f, uint32_t i)
{
    plan_header *h = (plan_header *)f.data;
    plan_section *section = &h->sections[h->n_sections - 1];
    plan_signature s;
    uint8_t seed[GRT_KEY_BYTES];
    ck_assert(plan_signature_read(f.data + section->offset, section->length, &s));
    ck_assert_uint_lt(i, s.n_digests);
    ck_assert(grt_key_parse(true, secret, strlen(secret), seed));
    s.digests[i].bytes[0] ^= 1;
    ck_assert_int_eq(plan_signature_make(h, seed, &s), GRT_OK);
    memcpy(f.data + section->offset, &s, section->length);
    plan_reseal(f.data, f.size);
}

START_TEST(digests_count)
{
    static const char *const names[] = {"META", "WEIGHTS", "TUNING"};
    for (uint32_t i = 0; i < 3; i++) {
        file f = signed_sample(false);
        sign_wrongly(f, i);
        expect(f, key, GRT_STATUS_UNTRUSTED, names[i]);
        free(f.data);
    }
    file f = signed_sample(true);
    sign_wrongly(f, 2); /* META, TUNING, the file */
    expect(f, key, GRT_STATUS_UNTRUSTED, ".weights is not what was signed");
    free(f.data);
}
END_TEST

START_TEST(weights_beside_the_plan)
{
    char pattern[2 * FILES_NAME];
    glob_t found;
    file f = signed_sample(true);
    expect(f, key, GRT_OK, "");
    snprintf(pattern, sizeof pattern, "%s/*.weights", directory);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    /* Weights with the checksum that META has would have to collide; a plan with another one is changed. */
    file w = files_read(found.gl_pathv[0]);
    uint64_t was, is;
    ck_assert(plan_checksum(w.data, w.size, &was));
    w.data[0] ^= 1;
    ck_assert(plan_checksum(w.data, w.size, &is));
    files_write(found.gl_pathv[0], w.data, w.size);
    expect(f, key, GRT_STATUS_INVALID_PLAN, "checksum");
    char *at = memmem(f.data, f.size, &was, sizeof was);
    ck_assert_ptr_nonnull(at);
    memcpy(at, &is, sizeof is);
    plan_reseal(f.data, f.size);
    expect(f, "all", GRT_OK, "");
    expect(f, key, GRT_STATUS_UNTRUSTED, "does not fit");
    globfree(&found);
    free(w.data);
    free(f.data);
}
END_TEST

/* Digests of large weights are checked by sessions, by whoever helps with the checksum. */
START_TEST(large_weights)
{
    const size_t size = (17 << 20) + 12345;
    char *data = calloc(1, size);
    uint64_t checksum;
    plan_digest digest;
    data[size - 1] = 1;
    ck_assert(plan_checksum(data, size, &checksum));
    ck_assert(plan_digest_of(data, size, &digest));
    for (int wrong = 0; wrong < 2; wrong++) {
        grt_weights_check *check;
        digest.bytes[31] ^= (uint8_t)wrong;
        ck_assert_int_eq(grt_weights_check_create("p.grt: WEIGHTS", data, size, checksum, &digest, &check),
                         GRT_OK);
        ck_assert(grt_weights_check_help(check));
        const grt_status wanted = wrong ? GRT_STATUS_UNTRUSTED : GRT_OK;
        ck_assert_int_eq(grt_weights_check_finish(check), wanted);
        ck_assert_int_eq(grt_weights_check_finish(check), wanted);
        grt_weights_check_release(check);
    }
    free(data);
}
END_TEST

/* The same by the public functions: a model of 17 MiB, whose session finds out. */
START_TEST(large_models)
{
    const size_t n = 17 << 18;
    float *w = calloc(n, sizeof *w);
    for (size_t i = 0; i < n; i++)
        w[i] = (float)(i % 251);
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "4456448");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "w", GRT_DTYPE_FLOAT, "4456448", w, n * sizeof *w));
    onnx_node(&m, m.graph, "Add", "x,w", "y");
    onnx_output(&m, m.graph, "y");
    onnx_compile(&m, NULL, path);
    onnx_release(&m);
    free(w);
    ck_assert_int_eq(grt_plan_sign(path, path, secret), GRT_OK);
    file f = files_read(path);
    const grt_compile_options options = {.struct_size = sizeof options, .trust = key};
    for (int changed = 0; changed < 2; changed++) {
        grt_runtime *runtime;
        grt_model *model = NULL;
        grt_session *session = NULL;
        grt_model_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
        ck_assert_int_eq(grt_model_open_memory_with(runtime, f.data, f.size, &options, &model), GRT_OK);
        ck_assert_int_eq(grt_model_get_info(model, &info), GRT_OK);
        ck_assert_str_eq(info.signer, key);
        ck_assert(info.verified);
        ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session),
                         changed ? GRT_STATUS_UNTRUSTED : GRT_OK);
        grt_session_release(session);
        grt_model_release(model);
        grt_runtime_release(runtime);
        sign_wrongly(f, 1);
    }
    free(f.data);
}
END_TEST

/* What is no code has no signature either: who wants one does not get a model without. */
START_TEST(models_have_none)
{
    onnx_model m = onnx_relu();
    grt_runtime *runtime;
    grt_model *model = NULL;
    grt_compile_options options = {.struct_size = sizeof options, .trust = key};
    onnx_write(&m, path);
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    ck_assert_int_eq(grt_model_open_with(runtime, path, &options, &model), GRT_STATUS_UNTRUSTED);
    options.trust = "none";
    ck_assert_int_eq(grt_model_open_with(runtime, path, &options, &model), GRT_OK);
    grt_model_release(model);
    ck_assert_int_eq(setenv("GRAPHRT_TRUST", key, 1), 0);
    ck_assert_int_eq(grt_model_open(runtime, path, &model), GRT_STATUS_UNTRUSTED);
    ck_assert_int_eq(setenv("GRAPHRT_TRUST", "everybody", 1), 0);
    ck_assert_int_eq(grt_model_open(runtime, path, &model), GRT_STATUS_INVALID_ARGUMENT);
    options.trust = "all"; /* what the program says counts more */
    ck_assert_int_eq(grt_model_open_with(runtime, path, &options, &model), GRT_OK);
    grt_model_release(model);
    ck_assert_int_eq(grt_compile(path, &options, path), GRT_STATUS_INVALID_ARGUMENT);
    grt_runtime_release(runtime);
    onnx_release(&m);
}
END_TEST

START_TEST(keys)
{
    static const char *const bad[] = {"",  "ALL",    "ed25519:", "ed25519:0", "all,none",
                                      ",", "none\n", "key ",     NULL};
    grt_trust trust;
    char text[20 * GRT_KEY_SIZE] = "";
    for (const char *const *b = bad; *b; b++)
        ck_assert_int_eq(grt_trust_parse(*b, &trust), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_trust_parse(secret, &trust), GRT_STATUS_INVALID_ARGUMENT);
    for (int i = 0; i < GRT_TRUST_MOST_KEYS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s,", i % 2 ? key : other_key);
    ck_assert_int_eq(grt_trust_parse(text, &trust), GRT_OK);
    ck_assert_uint_eq(trust.n_keys, GRT_TRUST_MOST_KEYS);
    strcat(text, key);
    ck_assert_int_eq(grt_trust_parse(text, &trust), GRT_STATUS_INVALID_ARGUMENT);
    free(signed_sample(false).data);
    ck_assert_int_eq(grt_plan_sign(path, path, key), GRT_STATUS_INVALID_ARGUMENT); /* the public one */
    ck_assert_ptr_null(strstr(grt_last_error(), key));
    ck_assert_int_eq(grt_key_create(NULL, secret), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_plan_sign(NULL, path, secret), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

/* Signing again replaces the signature; whatever changes the plan drops it; the same key gives the same
 * bytes. */
START_TEST(life_of_a_signature)
{
    file first = signed_sample(false);
    ck_assert_int_eq(grt_plan_sign(path, path, secret), GRT_OK);
    file again = files_read(path);
    ck_assert_uint_eq(first.size, again.size);
    ck_assert_mem_eq(first.data, again.data, first.size);
    ck_assert_int_eq(grt_plan_sign(path, path, other_secret), GRT_OK);
    file f = files_read(path);
    expect(f, other_key, GRT_OK, "");
    expect(f, key, GRT_STATUS_UNTRUSTED, other_key);
    free(f.data);
    const grt_cache_row row = {.key = "op=Conv;n=3;", .data = "x", .size = 1};
    ck_assert_int_eq(grt_plan_add_tuning(path, path, &row, 1), GRT_OK);
    f = files_read(path);
    expect(f, other_key, GRT_STATUS_UNTRUSTED, "not signed");
    expect(f, "all", GRT_OK, "");
    free(f.data);
    free(again.data);
    free(first.data);
}
END_TEST

Suite *suite_test_signature(void)
{
    Suite *suite = suite_create("signature");
    TCase *tc = tcase_create("signature");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, who_is_trusted);
    tcase_add_test(tc, nothing_can_be_changed);
    tcase_add_test(tc, nothing_can_be_left_out);
    tcase_add_test(tc, digests_count);
    tcase_add_test(tc, weights_beside_the_plan);
    tcase_add_test(tc, large_weights);
    tcase_add_test(tc, large_models);
    tcase_add_test(tc, models_have_none);
    tcase_add_test(tc, keys);
    tcase_add_test(tc, life_of_a_signature);
    suite_add_tcase(suite, tc);
    return suite;
}
