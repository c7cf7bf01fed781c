/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/plan_store.h"

#include "src/base/hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct variant {
    struct variant *next;
    grt_choice choice; /* key and data belong to it; rejected: as find and reject say */
} variant;

typedef struct grt_plan_group {
    variant *variants;
    UT_hash_handle hh;
    char key[];
} group;

typedef struct part {
    const char *at;
    size_t size; /* without the semicolon */
} part;

static part first_part(const char *key)
{
    return (part){key, strcspn(key, ";")};
}

static part plan_store_next_part(part p)
{
    const char *at = p.at + p.size + (p.at[p.size] == ';');
    return first_part(at);
}

static bool is_named(part p, const char *name)
{
    const size_t n = strlen(name);
    return p.size > n && !strncmp(p.at, name, n) && p.at[n] == '=';
}

static bool same_part(part a, part b)
{
    return a.size == b.size && !memcmp(a.at, b.at, a.size);
}

static part find_part(const char *key, const char *name)
{
    part p = first_part(key);
    while (p.size && !is_named(p, name))
        p = plan_store_next_part(p);
    return p;
}

/* The key without what may differ; malloc'ed. */
static char *portable(const char *key)
{
    const bool any_gpu = find_part(key, "sm").size > 0;
    char *out = malloc(strlen(key) + 2), *end = out;
    if (!out)
        return NULL;
    for (part p = first_part(key); p.size; p = plan_store_next_part(p)) {
        if (is_named(p, "driver") || (any_gpu && is_named(p, "gpu")))
            continue;
        memcpy(end, p.at, p.size);
        end[p.size] = ';';
        end += p.size + 1;
    }
    *end = '\0';
    return out;
}

static group *find_group(const grt_plan_store *store, const char *key)
{
    group *g = NULL;
    char *name = store->groups ? portable(key) : NULL;
    if (name)
        HASH_FIND_STR(store->groups, name, g);
    free(name);
    return g;
}

static void release_variant(variant *v)
{
    free((char *)v->choice.key);
    free((void *)v->choice.data);
    free(v);
}

static variant *plan_store_copy_of(const grt_choice *choice)
{
    variant *v = calloc(1, sizeof *v);
    char *key = strdup(choice->key), *data = malloc(choice->size + 1);
    if (!v || !key || !data) {
        free(v);
        free(key);
        free(data);
        return NULL;
    }
    if (choice->size)
        memcpy(data, choice->data, choice->size);
    data[choice->size] = '\0';
    v->choice = *choice;
    v->choice.key = key;
    v->choice.data = data;
    v->choice.rejected = false;
    return v;
}

static group *plan_store_find_or_add(grt_plan_store *store, const char *key)
{
    char *name = portable(key);
    group *g = NULL;
    if (name)
        GRT_HASH_FIND_OR_ADD(store->groups, name, g);
    free(name);
    return g;
}

static grt_plan_store *plan_store_of(const grt_choice_store *base)
{
    return (grt_plan_store *)(uintptr_t)base;
}

static bool plan_store_keep(grt_choice_store *base, const grt_choice *choice)
{
    group *g = plan_store_find_or_add(plan_store_of(base), choice->key);
    variant **at = g ? &g->variants : NULL;
    while (at && *at && strcmp((*at)->choice.key, choice->key) != 0)
        at = &(*at)->next;
    variant *old = at ? *at : NULL;
    if (old && old->choice.size == choice->size && !memcmp(old->choice.data, choice->data, choice->size)) {
        old->choice.source = choice->source; /* it may have been measured since */
        old->choice.cost_ms = choice->cost_ms;
        return true;
    }
    variant *fresh = at ? plan_store_copy_of(choice) : NULL;
    if (!fresh)
        return false;
    fresh->next = old ? old->next : NULL;
    *at = fresh;
    if (old)
        release_variant(old);
    return true;
}

static void plan_store_release(grt_choice_store *base)
{
    grt_plan_store *store = plan_store_of(base);
    group *g, *next;
    HASH_ITER (hh, store->groups, g, next) {
        HASH_DEL(store->groups, g);
        for (variant *v = g->variants, *after; v; v = after) {
            after = v->next;
            release_variant(v);
        }
        free(g);
    }
}

/* Rank of a row: this GPU first, then measured ones, then an equal key. */
static int plan_store_fit(const grt_choice *choice, const char *key)
{
    return 4 * same_part(find_part(key, "gpu"), find_part(choice->key, "gpu")) +
           2 * (choice->source == GRT_CHOICE_TUNED) + !strcmp(choice->key, key) + 1;
}

static variant *best(const grt_plan_store *store, const char *key)
{
    const group *g = find_group(store, key);
    variant *found = NULL;
    int most = 0;
    for (variant *v = g ? g->variants : NULL; v; v = v->next) {
        const int n = v->choice.rejected ? 0 : plan_store_fit(&v->choice, key);
        if (n > most) {
            most = n;
            found = v;
        }
    }
    return found;
}

static const grt_choice *plan_store_find(const grt_choice_store *base, const char *key)
{
    const variant *v = best(plan_store_of(base), key);
    return v ? &v->choice : NULL;
}

static bool plan_store_reject(grt_choice_store *base, const char *key)
{
    variant *v = best(plan_store_of(base), key);
    if (v)
        v->choice.rejected = true;
    return v != NULL;
}

void grt_plan_store_init(grt_plan_store *store)
{
    *store =
        (grt_plan_store){.base = {plan_store_find, plan_store_keep, plan_store_reject, plan_store_release}};
}

/* Keys begin with op, gpu, sm and driver; a kernel's own parts follow, its library's version first. */
static part version_part(const char *key)
{
    part p = first_part(key);
    while (p.size && (is_named(p, "op") || is_named(p, "gpu") || is_named(p, "sm") || is_named(p, "driver")))
        p = plan_store_next_part(p);
    return p;
}

static bool differ_in_version(const char *a, const char *b)
{
    const part va = version_part(a), vb = version_part(b);
    part p = first_part(a), q = first_part(b);
    const size_t name = strcspn(va.at, "=");
    if (same_part(va, vb) || !va.size || !vb.size || strncmp(va.at, vb.at, name + 1) != 0)
        return false;
    for (; p.size || q.size; p = plan_store_next_part(p), q = plan_store_next_part(q))
        if (!same_part(p, q) && (p.at != va.at || q.at != vb.at))
            return false;
    return true;
}

bool grt_plan_store_version(const grt_plan_store *store, const char *key, grt_text *there, grt_text *here)
{
    char *name = store->groups ? portable(key) : NULL;
    bool found = false;
    for (const group *g = name ? store->groups : NULL; g && !found; g = g->hh.next)
        if (differ_in_version(g->key, name)) {
            const part a = version_part(g->key), b = version_part(name);
            grt_text_add(there, "%.*s", (int)a.size, a.at);
            grt_text_add(here, "%.*s", (int)b.size, b.at);
            found = true;
        }
    free(name);
    return found;
}
