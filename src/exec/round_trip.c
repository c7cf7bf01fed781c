/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/round_trip.h"

#include "src/base/span.h"
#include "src/exec/execute.h"
#include "src/exec/transfer.h"

#include <string.h>

/* What takes longer to copy than to launch is left to the device's copy engines. */
static const size_t most_bytes = (size_t)1 << 20;

grt_status grt_round_trip_create(grt_arena *arena, const grt_program *program, grt_replay *out_trips)
{
    const int32_t bound = program->body->n_inputs + program->body->n_outputs;
    *out_trips = (grt_replay){0};
    return program->n_segments == 1 ? grt_replay_create(arena, 2 * bound, 1, out_trips) : GRT_OK;
}

/* Adds the bytes to be copied; false: the tensor is not where a graph could copy it. */
static bool add_bytes(const grt_tensor *bound, size_t *bytes)
{
    if (grt_is_device_tensor(bound))
        return true;
    const size_t more = grt_tensor_bytes(bound);
    if (bound->memory != GRT_MEMORY_PINNED || more > most_bytes)
        return false;
    *bytes += more;
    return *bytes <= most_bytes;
}

static bool input_fits(const grt_frame *frame, int32_t i, size_t *bytes)
{
    const grt_value *bound = &frame->executor->bound.inputs[i];
    return bound->kind == GRT_KIND_TENSOR &&
           frame->program->places[frame->program->body->inputs[i]].has_dims && add_bytes(&bound->t, bytes);
}

static bool output_fits(const grt_frame *frame, int32_t i, size_t *bytes)
{
    const grt_binding *bound = &frame->executor->bound;
    const int32_t v = frame->program->body->outputs[i];
    const grt_place *place = &frame->program->places[v];
    return bound->output_set[i] && place->has_dims && !place->made_on_host && !frame->host_ok[v] &&
           frame->program->output_is_free[i] && add_bytes(&bound->outputs[i], bytes);
}

/* True if there is something to copy, and little. */
static bool fits(const grt_frame *frame)
{
    const grt_program *program = frame->program;
    const grt_binding *bound = &frame->executor->bound;
    size_t bytes = 0;
    bool all = frame->trips.sets && !frame->executor->debug && !bound->any_asked && program->blocker < 0 &&
               program->segments[0].graph && program->segments[0].end == program->n_instructions;
    for (int32_t i = 0; all && i < program->body->n_inputs; i++)
        all = input_fits(frame, i, &bytes);
    for (int32_t i = 0; all && i < program->body->n_outputs; i++)
        all = output_fits(frame, i, &bytes);
    return all && bytes;
}

/* Where things lie on the device, then where the caller has them. */
static void take_pointers(grt_frame *frame)
{
    const grt_replay *replay = &frame->replay;
    const grt_binding *bound = &frame->executor->bound;
    const grt_plan_body *body = frame->program->body;
    void **theirs = frame->trips.pointers + replay->n_pointers;
    memcpy(frame->trips.pointers, replay->pointers, (size_t)replay->n_pointers * sizeof *replay->pointers);
    for (int32_t i = 0; i < body->n_inputs; i++)
        *theirs++ = bound->inputs[i].t.data;
    for (int32_t i = 0; i < body->n_outputs; i++)
        *theirs++ = bound->outputs[i].data;
}

static grt_status round_trip_enqueue(grt_frame *frame)
{
    void *stream = frame->executor->stream;
    grt_frame_set_stream(frame, stream);
    GRT_TRY(grt_frame_upload_inputs(frame, GRT_UPLOAD_PINNED, stream));
    GRT_TRY(grt_frame_run_range(frame, 0, frame->program->n_instructions));
    return grt_frame_copy_to_pinned(frame, stream);
}

/* A failure is no error: the run goes another way. */
static void round_trip_capture(grt_frame *frame, void **out_graph)
{
    grt_device *device = grt_executor_device(frame->executor);
    void *stream = frame->executor->stream;
    grt_status status = grt_device_graph_begin(device, stream);
    if (status == GRT_OK) {
        status = round_trip_enqueue(frame);
        const grt_status ended = grt_device_graph_end(device, stream, out_graph);
        status = status == GRT_OK ? ended : status;
    }
    if (status == GRT_OK)
        return;
    if (frame->executor->stop.found == GRT_OK) /* else it says nothing about the steps */
        grt_replay_note_failure(&frame->trips, 0, -1);
    grt_device_graph_release(device, *out_graph);
    *out_graph = NULL;
}

grt_status grt_round_trip_run(grt_frame *frame, bool *out_done)
{
    grt_device *device = grt_executor_device(frame->executor);
    *out_done = false;
    if (!fits(frame))
        return GRT_OK;
    take_pointers(frame);
    grt_graph_set *set = grt_replay_find(&frame->trips, device);
    if (set->ran && !set->graphs[0] && frame->trips.failures[0] < GRT_MAX_CAPTURES) {
        GRT_SPAN_ENTER(span, .kind = GRT_SPAN_CAPTURE, .device = frame->executor->session->name);
        round_trip_capture(frame, &set->graphs[0]);
        GRT_SPAN_LEAVE(span);
    }
    set->ran = true;
    if (!set->graphs[0])
        return GRT_OK;
    GRT_TRY(grt_stop_check(&frame->executor->stop));
    *out_done = true;
    return grt_frame_launch(frame, set->graphs[0], frame->executor->stream);
}
