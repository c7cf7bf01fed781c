/* SPDX-License-Identifier: Apache-2.0 */
/* See schedule.h.
 *
 * A request is handed to a worker, of the session that has the fewest at work: a shared queue that threads
 * help themselves from would give two requests to one device while another is idle. */
#include "src/pool/schedule.h"

#include "src/exec/state_slot.h"
#include "src/pool/linger.h"
#include "src/pool/prepared.h"
#include "src/pool/remote.h"
#include "src/pool/share.h"

#include <math.h>

/* What has state goes where that is, if there is a session. */
static grt_queue *queue_of(const grt_request *r)
{
    grt_lane *lane = r->lane;
    for (size_t i = 0; r->with && i < lane->n_sessions; i++)
        if (!lane->sessions[i].lost && lane->sessions[i].device->device == r->with->session->device)
            return &lane->sessions[i].own;
    return &lane->queue;
}

static void enter_queue(grt_request *r)
{
    r->in = queue_of(r);
    r->lane->n_own += r->in != &r->lane->queue;
    grt_queue_add(r->in, &r->queued);
}

static void leave_queue(grt_request *r)
{
    if (!r->in)
        return;
    grt_queue_remove(r->in, &r->queued);
    r->lane->n_own -= r->in != &r->lane->queue;
    r->in = NULL;
}

static void add_waiting(grt_request *r)
{
    grt_lane *lane = r->lane;
    r->older = lane->newest;
    r->newer = NULL;
    *(r->older ? &r->older->newer : &lane->oldest) = r;
    lane->newest = r;
    lane->rows_waiting += r->rows;
    lane->n_waiting++;
    if (!r->before)
        enter_queue(r);
    if (r->queued.deadline_ms != 0)
        grt_queue_add(&lane->pool->deadlines, &r->queued);
}

void grt_schedule_add(grt_request *r)
{
    grt_lane *lane = r->lane;
    if (!lane->n_waiting && !lane->running)
        grt_share_join(lane);
    r->queued.number = lane->pool->n_submitted++;
    add_waiting(r);
}

void grt_schedule_follow(grt_request *r)
{
    enter_queue(r);
}

void grt_schedule_find_sessions(grt_lane *lane)
{
    for (grt_request *r = lane->oldest; r; r = r->newer)
        if (r->with && r->in) {
            leave_queue(r);
            enter_queue(r);
        }
}

static void remove_waiting(grt_request *r)
{
    grt_lane *lane = r->lane;
    *(r->older ? &r->older->newer : &lane->oldest) = r->newer;
    *(r->newer ? &r->newer->older : &lane->newest) = r->older;
    lane->rows_waiting -= r->rows;
    lane->n_waiting--;
    leave_queue(r);
    grt_queue_remove(&lane->pool->deadlines, &r->queued);
    pthread_cond_signal(&lane->room);
}

static grt_request *first_waiting(const grt_lane *lane)
{
    return (grt_request *)grt_queue_first(&lane->queue);
}

static bool has_place(const grt_lane_session *s, const grt_request *r)
{
    return !s->lost && !s->held && s->idle && grt_share_has_place(s->device, r);
}

/* For the request, on the device, or on any if that is NULL. Of equals, the one whose turn it is. */
static grt_lane_session *least_busy(const grt_request *r, const grt_pool_device *device)
{
    const grt_lane *lane = r->lane;
    grt_lane_session *best = NULL;
    for (size_t i = 0; i < lane->n_sessions; i++) {
        grt_lane_session *s = &lane->sessions[(lane->turn + i) % lane->n_sessions];
        if (has_place(s, r) && (!device || s->device == device) && (!best || s->busy < best->busy))
            best = s;
    }
    return best;
}

static grt_worker *take_worker(grt_lane *lane, grt_lane_session *s, double now_ms)
{
    grt_worker *w = s->idle;
    s->idle = w->next_idle;
    s->busy++;
    lane->turn = (size_t)(s - lane->sessions) + 1;
    grt_share_begin(w, now_ms);
    w->n_requests = 0;
    w->rows = 0;
    return w;
}

void grt_schedule_become_idle(grt_worker *w, double now_ms)
{
    grt_lane_session *s = &w->lane->sessions[w->session];
    grt_share_end(w, now_ms);
    s->busy--;
    w->idle_ms = now_ms;
    w->n_requests = 0;
    w->begun = w->lent = false;
    w->next_idle = s->idle;
    s->idle = w;
}

static void give(grt_worker *w, grt_request *r)
{
    r->stage = GRT_REQUEST_AT_WORK;
    r->worker = w;
    if (!w->n_requests || r->queued.priority > w->priority)
        w->priority = r->queued.priority;
    w->first_rows[w->n_requests] = w->rows;
    w->requests[w->n_requests++] = r;
    w->rows += r->rows;
}

/* The request, and those behind it that go into a batch with it. */
static void take_requests(grt_lane *lane, grt_worker *w, grt_request *first)
{
    grt_request *r = first;
    do {
        remove_waiting(r);
        give(w, r);
        r = first_waiting(lane);
    } while (first->rows && r && r->rows && w->rows + r->rows <= lane->batching.most_rows &&
             grt_batching_fits(&lane->batching, first, r));
}

grt_worker *grt_schedule_lend(grt_request *r)
{
    grt_lane *lane = r->lane;
    grt_lane_session *s = lane->batching.most_rows ? NULL : least_busy(r, NULL);
    if (!s || !s->lends || !grt_prepared_for(s->idle, r))
        return NULL;
    for (size_t i = 0; i < lane->pool->n_lanes; i++) /* its turn may be another lane's */
        if (lane->pool->lanes[i]->queue.n || lane->pool->lanes[i]->n_own)
            return NULL;
    if (!lane->running)
        grt_share_join(lane);
    grt_worker *w = take_worker(lane, s, r->submitted_ms);
    w->begun = w->lent = true;
    give(w, r);
    return w;
}

grt_worker *grt_schedule_overtake(grt_request *r)
{
    grt_worker *w = r->stage == GRT_REQUEST_AT_WORK ? r->worker : NULL;
    if (!w || w->begun || w->n_requests != 1 || !w->lane->sessions[w->session].lends ||
        !grt_prepared_for(w, r)) {
        grt_linger_hurry(r->pool);
        return NULL;
    }
    w->begun = w->lent = true;
    grt_linger_overtaken(w, grt_now_ms());
    return w;
}

/* When the lane's next batch is made, if a worker is idle then; 0: now. */
static double batch_time(const grt_lane *lane)
{
    const grt_request *first = first_waiting(lane);
    const bool at_once = !first->rows || lane->max_delay_ms <= 0 || lane->pool->closing ||
                         lane->pool->n_draining || lane->n_waiting >= lane->most_waiting ||
                         lane->rows_waiting >= lane->batching.most_rows;
    return at_once ? 0 : lane->oldest->submitted_ms + lane->max_delay_ms;
}

/* Who is served, and where. */
typedef struct pick {
    grt_request *request; /* NULL: nobody */
    grt_lane_session *session;
} pick;

static bool is_better(const grt_request *a, const grt_request *b)
{
    const grt_queued *x = &a->queued, *y = &b->queued;
    if (x->priority != y->priority)
        return x->priority > y->priority;
    return a->lane != b->lane ? a->lane->used < b->lane->used : x->number < y->number;
}

static void consider(pick *best, grt_request *request, grt_lane_session *session)
{
    if (session && (!best->request || is_better(request, best->request)))
        *best = (pick){request, session};
}

static void consider_own(pick *best, const grt_lane *lane)
{
    for (size_t i = 0; i < lane->n_sessions; i++) {
        const grt_lane_session *s = &lane->sessions[i];
        grt_request *first = (grt_request *)grt_queue_first(&s->own);
        if (first)
            consider(best, first, least_busy(first, s->device));
    }
}

/* *out_next gets the time of a batch that is not made yet, if that is earlier. */
static pick choose_request(const grt_pool *pool, double now, double *out_next)
{
    pick best = {0};
    for (size_t i = 0; i < pool->n_lanes; i++) {
        grt_lane *lane = pool->lanes[i];
        grt_lane_session *session = lane->queue.n ? least_busy(first_waiting(lane), NULL) : NULL;
        const double at = session ? batch_time(lane) : 0;
        if (at > now)
            *out_next = fmin(*out_next, at);
        else if (session)
            consider(&best, first_waiting(lane), session);
        if (lane->n_own)
            consider_own(&best, lane);
    }
    return best;
}

/* The time of the next batch that has to wait. */
static double dispatch_requests(grt_pool *pool, double now_ms)
{
    double next = INFINITY;
    pick p;
    while ((p = choose_request(pool, now_ms, &next)).request) {
        grt_worker *w = take_worker(p.request->lane, p.session, now_ms);
        take_requests(p.request->lane, w, p.request);
        grt_linger_call(w, now_ms);
        next = INFINITY;
    }
    return next;
}

void grt_schedule_dispatch(grt_pool *pool, double now_ms)
{
    grt_linger_hurry(pool);
    const double next = dispatch_requests(pool, now_ms);
    const grt_request *first = (grt_request *)grt_queue_first(&pool->deadlines);
    grt_schedule_wake_keeper(pool, first ? fmin(next, first->queued.deadline_ms) : next);
}

void grt_schedule_wake_keeper(grt_pool *pool, double at_ms)
{
    if (!(at_ms < pool->keeper_until))
        return;
    pool->keeper_until = at_ms;
    pthread_cond_signal(&pool->keeper_wake);
}

void grt_schedule_leave(grt_request *r, grt_status verdict)
{
    grt_pool *pool = r->pool;
    if (r->stage == GRT_REQUEST_WAITING)
        remove_waiting(r);
    else {
        grt_worker *w = r->worker;
        grt_queue_remove(&pool->deadlines, &r->queued);
        for (size_t i = 0; i < w->n_requests; i++)
            if (w->requests[i] == r)
                w->requests[i] = NULL;
        if (atomic_fetch_sub_explicit(&w->live, 1, memory_order_relaxed) == 1)
            grt_remote_cancel(w);
    }
    r->stage = GRT_REQUEST_ENDING;
    r->verdict = verdict;
    r->next = pool->left;
    pool->left = r;
    grt_schedule_wake_keeper(pool, 0);
}

bool grt_schedule_is_served(const grt_lane *lane)
{
    for (size_t i = 0; i < lane->n_sessions; i++)
        if (!lane->sessions[i].lost || lane->sessions[i].coming)
            return true;
    return false;
}

bool grt_schedule_lose(grt_lane_session *s, grt_lane *lane)
{
    s->lost = true;
    if (!grt_schedule_is_served(lane)) {
        while (lane->oldest)
            grt_schedule_leave(lane->oldest, GRT_STATUS_DEVICE);
        return false;
    }
    grt_schedule_find_sessions(lane);
    return true;
}

bool grt_schedule_go_elsewhere(grt_worker *w, grt_request **slot)
{
    grt_lane *lane = w->lane;
    grt_request *r = *slot;
    if (!grt_schedule_lose(&lane->sessions[w->session], lane))
        return false;
    if (r->with) /* whose content is lost, too */
        return false;
    *slot = NULL;
    r->stage = GRT_REQUEST_WAITING;
    r->worker = NULL;
    add_waiting(r); /* with the number that it had: it goes first among equals */
    if (atomic_load_explicit(&r->cancelled, memory_order_relaxed))
        grt_schedule_leave(r, GRT_STATUS_CANCELLED);
    return true;
}

double grt_schedule_look(grt_pool *pool)
{
    grt_request *r;
    const double now = grt_now_ms();
    while ((r = (grt_request *)grt_queue_first(&pool->deadlines)) && r->queued.deadline_ms <= now)
        grt_schedule_leave(r, GRT_STATUS_DEADLINE_EXCEEDED);
    const double next = dispatch_requests(pool, now);
    return r ? fmin(next, r->queued.deadline_ms) : next;
}
