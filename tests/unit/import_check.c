/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/import_check.h"

#include <string.h>

ir_module *import_ok(onnx_model *m)
{
    ir_module *module = NULL;
    ck_assert_msg(onnx_import(m, &module) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    return module;
}

void import_refused(onnx_model *m, const char *a, const char *b)
{
    import_refused_as(m, GRT_STATUS_INVALID_MODEL, a, b);
}

void import_refused_as(onnx_model *m, grt_status status, const char *a, const char *b)
{
    ir_module *module = NULL;
    ck_assert_int_eq(onnx_import(m, &module), status);
    ck_assert_ptr_null(module);
    ck_assert_msg(strstr(grt_last_error(), a) && strstr(grt_last_error(), b),
                  "'%s' does not say '%s' and '%s'", grt_last_error(), a, b);
    onnx_release(m);
}

void import_add(Suite *suite, const char *name, const TTest *const *tests)
{
    TCase *tcase = tcase_create(name);
    for (; *tests; tests++)
        tcase_add_test(tcase, *tests);
    suite_add_tcase(suite, tcase);
}
