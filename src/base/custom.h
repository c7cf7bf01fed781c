/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that programs bring: the process's register of them, and what their functions may ask of the
 * library. An entry is never changed and never removed. */
#ifndef GRT_BASE_CUSTOM_H
#define GRT_BASE_CUSTOM_H

#include "src/base/dim.h"
#include "src/base/op_desc.h"

struct op_row;

typedef struct grt_custom_entry {
    struct grt_custom_entry *next;
    grt_custom_op op; /* with texts and lists of its own */
    const struct op_row *row;
} grt_custom_entry;

/* The operator of this name, or NULL. */
const grt_custom_entry *grt_custom_find(const char *domain, const char *name);
/* The same in a list that is not published yet. */
const grt_custom_entry *grt_custom_find_in(const grt_custom_entry *list, const char *domain,
                                           const char *name);
/* A list that ends with `last` becomes known to all. One thread at a time. */
void grt_custom_publish(grt_custom_entry *first, grt_custom_entry *last);

/* What stands behind a grt_custom_node: made on the stack for one call of an operator's function. */
typedef struct grt_custom_view {
    const grt_op_desc *desc;
    grt_dims *dims; /* NULL outside the shape rule */
    bool told;      /* the function has given its failure a message */
} grt_custom_view;
grt_custom_node grt_custom_show(grt_custom_view *view, int32_t n_in, int32_t n_out);
/* What a function returned: a status that is known, and a message with every failure. */
grt_status grt_custom_status(const grt_custom_view *view, grt_status status);

#endif
