/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in RE2's syntax, matched in time linear in the text: no backtracking, no memory during
 * a match. */
#ifndef GRT_BACKENDS_CPU_REGEX_H
#define GRT_BACKENDS_CPU_REGEX_H

#include "src/base/status.h"

typedef struct cpu_regex cpu_regex;

/* INVALID_MODEL for what is no expression, UNSUPPORTED for Unicode classes (\p{...}), single bytes (\C) and
 * folding the case of letters beyond ASCII. */
grt_status cpu_regex_compile(const char *pattern, size_t size, cpu_regex **out_regex);
void cpu_regex_release(cpu_regex *regex); /* NULL-safe */
/* Bytes that one match in flight needs. */
size_t cpu_regex_scratch_bytes(const cpu_regex *regex);
/* Does the whole text match? UTF-8; a byte that is no UTF-8 counts as one character U+FFFD. */
bool cpu_regex_full_match(const cpu_regex *regex, const char *text, size_t size, void *scratch);
/* The first match at or after byte `from`, the longest of those that begin there; it may be empty. The text
 * before `from` counts for ^ and \b. */
bool cpu_regex_find(const cpu_regex *regex, const char *text, size_t size, size_t from, void *scratch,
                    size_t *out_begin, size_t *out_end);

#endif
