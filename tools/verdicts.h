/* SPDX-License-Identifier: Apache-2.0 */
/* What became of test cases: a line each, counts, and reports for machines. */
#ifndef TOOLS_VERDICTS_H
#define TOOLS_VERDICTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum verdict { CASE_PASSED, CASE_FAILED, CASE_SKIPPED } verdict;

typedef struct verdicts {
    bool verbose;      /* a line for every case, not for failures alone */
    bool json;         /* a document on standard output instead of lines */
    const char *junit; /* a file for JUnit's XML; NULL: none */
    size_t counts[3];  /* by verdict */
    json_t *cases;     /* for the reports */
} verdicts;

/* False if memory ran out, which is printed. */
bool verdicts_add(verdicts *v, const char *name, verdict found, const char *why);
/* The last line, or the reports. False after printing what kept one from being written. */
bool verdicts_end(const verdicts *v);
void verdicts_release(verdicts *v);

#endif
