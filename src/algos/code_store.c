/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/code_store.h"

#include "src/algos/code_db.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What went wrong, each way once for a file. */
static void warn_once(grt_file_store *store, atomic_bool *said, const char *message)
{
    if (!atomic_exchange(said, true))
        grt_file_store_warn(store, message);
}

static void warn_damaged(grt_file_store *store)
{
    grt_text text = {0};
    grt_text_add(&text,
                 "algorithm cache '%s': a damaged row of a generated kernel was ignored; it is made anew",
                 store->path);
    warn_once(store, &store->damaged_code, grt_text_get(&text));
    grt_text_release(&text);
}

void *grt_code_store_read(grt_file_store *store, const char *key, char **out_key, size_t *out_size)
{
    grt_choice row = {0};
    bool damaged;
    *out_key = NULL;
    *out_size = 0;
    if (!store->path)
        return NULL;
    char *error = grt_error_keep();
    if (grt_code_db_find(store->path, key, &row, &damaged) != GRT_OK)
        warn_once(store, &store->unread_code, grt_last_error());
    else if (damaged)
        warn_damaged(store);
    grt_error_give_back(error);
    *out_key = (char *)row.key;
    *out_size = row.size;
    return (void *)row.data;
}

void grt_code_store_write(grt_file_store *store, const char *key, const void *data, size_t size, double ms)
{
    const grt_choice row = {.key = key,
                            .data = data,
                            .size = size,
                            .source = GRT_CHOICE_CODE,
                            .cost_ms = ms,
                            .made = (int64_t)time(NULL)};
    if (!store->path)
        return;
    char *error = grt_error_keep();
    if (grt_code_db_write(store->path, &row, 1, GRT_CODE_MAX_TOTAL) != GRT_OK)
        warn_once(store, &store->unwritten_code, grt_last_error());
    grt_error_give_back(error);
}

void grt_code_store_drop(grt_file_store *store, const char *key)
{
    if (!store->path)
        return;
    char *error = grt_error_keep();
    (void)grt_code_db_drop(store->path, key);
    grt_error_give_back(error);
}
