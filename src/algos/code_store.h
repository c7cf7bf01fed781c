/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code that was made on this machine, in the cache's file (code_db.h). Whatever is wrong with the
 * file becomes a warning, never a failure; the thread's error stays as it was. Any thread. */
#ifndef GRT_SRC_ALGOS_CODE_STORE_H
#define GRT_SRC_ALGOS_CODE_STORE_H

#include "src/algos/file_store.h"

/* As grt_device_code_read says. */
void *grt_code_store_read(grt_file_store *store, const char *key, char **out_key, size_t *out_size);
void grt_code_store_write(grt_file_store *store, const char *key, const void *data, size_t size, double ms);
void grt_code_store_drop(grt_file_store *store, const char *key);

#endif
