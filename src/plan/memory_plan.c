/* SPDX-License-Identifier: Apache-2.0 */
/* Static memory planning: one sweep over the steps with a list of free intervals. */
#include "src/plan/memory_plan.h"

#include "src/base/checked.h"
#include "src/base/grow.h"

#include <stdlib.h>
#include <string.h>

typedef struct interval {
    size_t begin, end;
} interval;

typedef struct planner {
    const grt_memory_request *request;
    const grt_plan_body *body;
    const size_t *bytes;
    int32_t *storage;
    int32_t *last_use; /* per value; after unite(): per storage */
    size_t *offset, *within;
    int32_t *dying;      /* list heads per step: storages whose last use it is */
    int32_t *next_dying; /* per storage */
    interval *free;
    int32_t n_free, capacity;
    size_t top, arena_bytes;
} planner;

static bool in_arena(const planner *p, int32_t v)
{
    return p->request->planned[v];
}

static int32_t root(const planner *p, int32_t v)
{
    while (p->storage[v] != v)
        v = p->storage[v] = p->storage[p->storage[v]];
    return v;
}

static void use_at(planner *p, int32_t v, int32_t step)
{
    if (v >= 0 && p->last_use[v] < step)
        p->last_use[v] = step;
}

/* Captured values are read while the step runs, but are not inputs of it. */
static void use_captures(planner *p, const grt_plan_step *step, int32_t until)
{
    for (int32_t b = 0; b < step->n_bodies; b++) {
        const grt_plan_body *inner = &p->request->plan->bodies[step->bodies[b]];
        for (int32_t i = 0; i < inner->n_captures; i++)
            use_at(p, inner->captures_outer[i], until);
    }
}

static void find_last_uses(planner *p)
{
    const grt_plan_body *body = p->body;
    for (int32_t s = 0; s < body->n_steps; s++) {
        const grt_plan_step *step = &body->steps[s];
        /* A step whose shapes depend on data may hand its inputs on as views, to be read at any later time.
         */
        int32_t until = p->request->step_planned[s] ? s : body->n_steps;
        for (int32_t i = 0; i < step->n_in; i++)
            use_at(p, step->in[i], until);
        use_captures(p, step, until);
        for (int32_t i = 0; i < step->n_out; i++)
            use_at(p, step->out[i], s);
    }
    for (int32_t i = 0; i < body->n_outputs; i++)
        use_at(p, body->outputs[i], body->n_steps);
}

/* `v` takes the memory of `into`, which must be a root, from `within` on. */
static void unite(planner *p, int32_t v, int32_t into, size_t within)
{
    p->storage[v] = into;
    p->within[v] = within;
    use_at(p, into, p->last_use[v]);
}

static bool memory_plan_is_view(const planner *p, int32_t s)
{
    return p->request->step_views ? p->request->step_views[s] : p->body->steps[s].kind == GRT_STEP_VIEW;
}

static void unite_views(planner *p)
{
    for (int32_t s = 0; s < p->body->n_steps; s++) {
        const grt_plan_step *step = &p->body->steps[s];
        if (!memory_plan_is_view(p, s) || !p->request->step_planned[s])
            continue;
        size_t at = p->within[step->in[0]];
        for (int32_t i = 0; i < step->n_out; i++) {
            unite(p, step->out[i], root(p, step->in[0]), at);
            at += p->bytes[step->out[i]];
        }
    }
}

/* How often a storage is read by one step: in place is for the only reader. */
static int32_t reads(const planner *p, const grt_plan_step *step, int32_t storage)
{
    int32_t n = 0;
    for (int32_t i = 0; i < step->n_in; i++)
        n += step->in[i] >= 0 && root(p, step->in[i]) == storage;
    return n;
}

/* Element i of `a` lies where element i of `b` would. Equal bytes are not enough: a broadcast operand of a
 * wider type, float32 [8] beside a result of bool [4,8], is read again after its first bytes have been
 * written over. */
static bool same_elements(const planner *p, int32_t a, int32_t b)
{
    return p->bytes[a] == p->bytes[b] && p->request->elements[a] == p->request->elements[b];
}

static void unite_in_place(planner *p)
{
    for (int32_t s = 0; s < p->body->n_steps; s++) {
        const grt_plan_step *step = &p->body->steps[s];
        if (step->kind != GRT_STEP_KERNEL || memory_plan_is_view(p, s) || !p->request->step_planned[s] ||
            step->n_out < 1 || step->out[0] < 0)
            continue;
        uint32_t mask = p->request->in_place(p->request->user, s);
        int32_t out = step->out[0];
        for (int32_t i = 0; i < step->n_in && i < 8; i++) {
            if (!(mask >> i & 1u) || step->in[i] < 0)
                continue;
            int32_t in = root(p, step->in[i]);
            /* The input is all of its storage, not a part that others lie beside. */
            if (!in_arena(p, in) || p->last_use[in] != s || !same_elements(p, step->in[i], out) ||
                p->bytes[in] != p->bytes[step->in[i]] || reads(p, step, in) != 1)
                continue;
            unite(p, out, in, 0);
            break;
        }
    }
}

static bool insert_free(planner *p, int32_t at, interval hole)
{
    if (!GRT_GROW(p->free, p->n_free, p->capacity))
        return false;
    memmove(&p->free[at + 1], &p->free[at], (size_t)(p->n_free - at) * sizeof *p->free);
    p->free[at] = hole;
    p->n_free++;
    return true;
}

static void remove_free(planner *p, int32_t at)
{
    p->n_free--;
    memmove(&p->free[at], &p->free[at + 1], (size_t)(p->n_free - at) * sizeof *p->free);
}

static bool memory_plan_allocate(planner *p, int32_t v)
{
    size_t size = grt_align_up(p->bytes[v], GRT_VALUE_ALIGNMENT);
    int32_t best = -1;
    for (int32_t i = 0; i < p->n_free; i++) {
        size_t room = p->free[i].end - p->free[i].begin;
        if (room >= size && (best < 0 || room < p->free[best].end - p->free[best].begin))
            best = i;
    }
    if (best >= 0) {
        p->offset[v] = p->free[best].begin;
        p->free[best].begin += size;
        if (p->free[best].begin == p->free[best].end)
            remove_free(p, best);
        return true;
    }
    /* A hole that reaches the top may grow. */
    bool grow = p->n_free && p->free[p->n_free - 1].end == p->top;
    p->offset[v] = grow ? p->free[p->n_free - 1].begin : p->top;
    if (grow)
        remove_free(p, p->n_free - 1);
    if (!grt_add_size(p->offset[v], size, &p->top) || p->top > SIZE_MAX / 4)
        return false;
    p->arena_bytes = p->top > p->arena_bytes ? p->top : p->arena_bytes;
    return true;
}

static bool give_back(planner *p, int32_t v)
{
    interval hole = {p->offset[v], p->offset[v] + grt_align_up(p->bytes[v], GRT_VALUE_ALIGNMENT)};
    if (hole.begin == hole.end)
        return true;
    int32_t low = 0, high = p->n_free;
    while (low < high) {
        int32_t mid = (low + high) / 2;
        if (p->free[mid].begin < hole.begin)
            low = mid + 1;
        else
            high = mid;
    }
    bool joins_left = low > 0 && p->free[low - 1].end == hole.begin;
    bool joins_right = low < p->n_free && p->free[low].begin == hole.end;
    if (joins_left && joins_right) {
        p->free[low - 1].end = p->free[low].end;
        remove_free(p, low);
    } else if (joins_left) {
        p->free[low - 1].end = hole.end;
    } else if (joins_right) {
        p->free[low].begin = hole.begin;
    } else {
        return insert_free(p, low, hole);
    }
    return true;
}

static bool memory_plan_sweep(planner *p)
{
    const grt_plan_body *body = p->body;
    for (int32_t s = 0; s < body->n_steps; s++) {
        const grt_plan_step *step = &body->steps[s];
        for (int32_t i = 0; i < step->n_out; i++) {
            int32_t v = step->out[i];
            if (v < 0 || !in_arena(p, v) || root(p, v) != v)
                continue;
            if (!memory_plan_allocate(p, v))
                return false;
            p->next_dying[v] = p->dying[p->last_use[v]];
            p->dying[p->last_use[v]] = v;
        }
        for (int32_t v = p->dying[s]; v >= 0; v = p->next_dying[v])
            if (!give_back(p, v))
                return false;
    }
    return true;
}

static bool memory_plan_init(planner *p)
{
    size_t n = (size_t)p->body->n_values + 1, steps = (size_t)p->body->n_steps + 1;
    p->storage = malloc(n * sizeof *p->storage);
    p->last_use = malloc(n * sizeof *p->last_use);
    p->offset = malloc(n * sizeof *p->offset);
    p->within = calloc(n, sizeof *p->within);
    p->next_dying = malloc(n * sizeof *p->next_dying);
    p->dying = malloc(steps * sizeof *p->dying);
    if (!p->storage || !p->last_use || !p->offset || !p->within || !p->next_dying || !p->dying)
        return false;
    for (int32_t v = 0; v < p->body->n_values; v++) {
        p->storage[v] = v;
        p->last_use[v] = -1;
        p->offset[v] = SIZE_MAX;
    }
    memset(p->dying, 0xff, steps * sizeof *p->dying);
    return true;
}

grt_status grt_memory_plan_make(const grt_memory_request *request, grt_memory_plan *out_plan)
{
    const grt_plan_body *body = request->body;
    planner p = {.request = request, .body = body, .bytes = request->bytes};
    bool ok = memory_plan_init(&p);
    if (ok) {
        find_last_uses(&p);
        unite_views(&p);
        unite_in_place(&p);
        ok = memory_plan_sweep(&p);
    }
    if (ok)
        for (int32_t v = 0; v < body->n_values; v++) {
            int32_t r = root(&p, v);
            p.storage[v] = r;
            if (r != v)
                p.offset[v] = p.offset[r] == SIZE_MAX ? SIZE_MAX : p.offset[r] + p.within[v];
        }
    free(p.last_use);
    free(p.next_dying);
    free(p.dying);
    free(p.free);
    if (!ok) {
        free(p.storage);
        free(p.offset);
        free(p.within);
        return grt_fail_memory(p.top);
    }
    *out_plan = (grt_memory_plan){body->n_values, p.storage, p.offset, p.within, p.arena_bytes};
    return GRT_OK;
}

void grt_memory_plan_release(grt_memory_plan *plan)
{
    free(plan->storage);
    free(plan->offset);
    free(plan->within);
    *plan = (grt_memory_plan){0};
}
