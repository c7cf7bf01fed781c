/* SPDX-License-Identifier: Apache-2.0 */
/* Test cases in the layout of the ONNX repository, and the list of those that are expected to fail. */
#ifndef TOOLS_CASES_H
#define TOOLS_CASES_H

#include "tools/compare.h"

typedef struct test_case {
    char *name;      /* the directory's own name */
    char *directory; /* with test_data_set_* */
    char *model;     /* NULL: neither model.onnx nor a light model's data.json is there */
    char *reference; /* of a light model: its one output; the input is arange(n) / n */
    tolerance tolerance;
} test_case;

typedef struct test_cases {
    size_t n;
    test_case *items;
} test_cases;

/* `directory` is a case, or holds cases: then all of them, by name. model (may be NULL) replaces model.onnx.
 * Tolerances are `given` where they are not negative, else those of the case's data.json, else the official
 * ones. False after printing an error. */
bool cases_add(test_cases *cases, const char *directory, const char *model, tolerance given);
void cases_release(test_cases *cases);

typedef struct expectation {
    char *name, *reason;
} expectation;

typedef struct expectations {
    size_t n;
    expectation *items;
} expectations;

/* Lines "name: reason"; '#' begins a comment. Every entry needs a reason. False after printing an error.
 */
bool expectations_read(expectations *list, const char *path);
const char *expectations_find(const expectations *list, const char *name); /* the reason, or NULL */
void expectations_release(expectations *list);

#endif
