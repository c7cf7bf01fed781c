/* SPDX-License-Identifier: Apache-2.0 */
/* The op table: rows found by name, gathered from the files that graph/sources.mk lists. */
#include "graph/ir/op.h"

#include "src/base/custom.h"

#include <pthread.h>
#include <string.h>

#define X(file) extern const op_table grt_ops_##file;
#include "graph_ops.inc"
#undef X

static const op_table *const tables[] = {
#define X(file) &grt_ops_##file,
#include "graph_ops.inc"
#undef X
};
enum { N_TABLES = sizeof tables / sizeof *tables };

/* A small open-addressing index, built once: no allocation that would have to be released. */
enum { SLOTS = 1024 };
static const op_row *slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *canonical_domain(const char *domain)
{
    return strcmp(domain, "ai.onnx") ? domain : "";
}

static unsigned op_slot_of(const char *domain, const char *name)
{
    unsigned h = 2166136261u;
    for (const char *p = domain; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    for (const char *p = name; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return h % SLOTS;
}

static void build_index(void)
{
    for (size_t t = 0; t < N_TABLES; t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            const op_row *row = &tables[t]->rows[i];
            unsigned slot = op_slot_of(row->domain, row->name);
            while (slots[slot])
                slot = (slot + 1) % SLOTS;
            slots[slot] = row;
        }
}

const op_row *op_find(const char *domain, const char *name)
{
    pthread_once(&once, build_index);
    domain = canonical_domain(domain);
    for (unsigned slot = op_slot_of(domain, name); slots[slot]; slot = (slot + 1) % SLOTS)
        if (!strcmp(slots[slot]->name, name) && !strcmp(slots[slot]->domain, domain))
            return slots[slot];
    const grt_custom_entry *custom = grt_custom_find(domain, name);
    return custom ? custom->row : NULL;
}

const op_row *op_at(size_t index)
{
    for (size_t t = 0; t < N_TABLES; t++) {
        if (index < tables[t]->n)
            return &tables[t]->rows[index];
        index -= tables[t]->n;
    }
    return NULL;
}

int32_t op_newest(const char *domain)
{
    static const struct {
        const char *domain;
        int32_t version;
    } domains[] = {{"", 28},
                   {"ai.onnx.ml", 5},
                   {"com.microsoft", 1},
                   {"ai.onnx.preview", 1},
                   {"ai.onnx.preview.training", 1},
                   {"graphrt", 1}};
    domain = canonical_domain(domain);
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (!strcmp(domains[i].domain, domain))
            return domains[i].version;
    return 0;
}
