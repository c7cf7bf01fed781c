/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's choices in memory: a map of the file's (db.h), and what this process added to it. The file is
 * touched by load and save only. Whatever is wrong with it becomes a warning, never a failure. */
#ifndef GRT_SRC_ALGOS_FILE_STORE_H
#define GRT_SRC_ALGOS_FILE_STORE_H

#include "src/algos/store.h"
#include "src/base/text.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct grt_file_store {
    grt_choice_store base; /* keep: a measured choice stays where the other is from a heuristic */
    char *path;            /* NULL: off */
    bool named;            /* by the program or the environment */
    bool transient;        /* what is kept and rejected now stays in this process */
    struct grt_file_entry *map;
    pthread_mutex_t *lock; /* of the map and the warnings; never held while the file is used */
    pthread_mutex_t file;  /* one load or save at a time */
    atomic_bool dirty;
    uint64_t stamp;                                        /* of the file when it was loaded; under `file` */
    bool failed;                                           /* the file could not be written: said once */
    atomic_bool unread_code, unwritten_code, damaged_code; /* likewise, of code (code_store.h) */
    grt_text warnings;
} grt_file_store;

/* path NULL: the default place, see grt_algo_db_default_path; "off": in memory only. Touches no file. */
grt_status grt_file_store_init(grt_file_store *store, const char *path, pthread_mutex_t *lock);
/* Read what the file has that the map has not; without the lock. Costs a stat() if it has not changed since.
 */
void grt_file_store_load(grt_file_store *store);
/* Write what was kept or rejected since the last time, in one transaction; without the lock. */
void grt_file_store_save(grt_file_store *store);
/* What is wrong with the file, for whoever asks and for the log; without the lock. */
void grt_file_store_warn(grt_file_store *store, const char *message);
/* The key in the file that shares the most parts `name=value;` with this one; NULL if the file has none of
 * its op. */
const char *grt_file_store_nearest(const grt_file_store *store, const char *key);

#endif
