/* SPDX-License-Identifier: Apache-2.0 */
/* The backends there are. */
#ifndef GRT_BACKENDS_REGISTRY_H
#define GRT_BACKENDS_REGISTRY_H

#include "backends/backend.h"

#pragma GCC visibility push(default) /* for backend modules and tests; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* Backend by name: one of the library's, or of a module, which is looked for and opened on first use. NULL if
 * there is none; then the error says why, and which exist. */
const grt_backend *grt_backend_find(const char *name);
/* The names on the registry's list, in its order, NULL past the end; modules that are not on it, such as
 * those of tests, are found by name only. */
const char *grt_backend_name(size_t index);
/* Make a backend of the program's own known by its name. It must live as long as the process. Errors:
 * INTERNAL if what it offers is not complete, or the name is taken. */
grt_status grt_backend_register(const grt_backend *backend);
/* INTERNAL, with what is missing, if the backend is not complete: a function that every backend has, or one
 * of a table that it has. */
grt_status grt_backend_check(const grt_backend *backend);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
