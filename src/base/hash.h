/* SPDX-License-Identifier: Apache-2.0 */
/* uthash, with tables that survive a lack of memory: left to itself it ends the process. */
#ifndef GRT_BASE_HASH_H
#define GRT_BASE_HASH_H

#define HASH_NONFATAL_OOM 1
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* Behind each HASH_ADD: is the element in the table? If not, there was no memory, and it is the caller's
 * still. */
#define GRT_HASH_HAS(element) ((element)->hh.tbl != NULL)

/* The element of a text. Elements end in `char key[]`, the text; one that is not there is added, of zeros but
 * for its key. element NULL: there was no memory. */
#define GRT_HASH_FIND_OR_ADD(table, text, element)                                            \
    do {                                                                                      \
        const size_t length_ = strlen(text);                                                  \
        HASH_FIND(hh, table, text, length_, element);                                         \
        if (!(element) && ((element) = calloc(1, sizeof *(element) + length_ + 1)) != NULL) { \
            memcpy((element)->key, text, length_ + 1);                                        \
            HASH_ADD_KEYPTR(hh, table, (element)->key, length_, element);                     \
            if (!GRT_HASH_HAS(element)) {                                                     \
                free(element);                                                                \
                (element) = NULL;                                                             \
            }                                                                                 \
        }                                                                                     \
    } while (0)

#endif
