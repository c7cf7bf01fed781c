/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/program.h"

bool grt_program_has_dims(const grt_program *main, const grt_plan_value *v)
{
    if (v->kind != GRT_KIND_TENSOR || v->rank < 0)
        return false;
    for (int32_t i = 0; i < v->rank; i++)
        if (!main->dims_known[v->dims[i]] || main->dims[v->dims[i]] < 0)
            return false;
    return true;
}

const grt_instruction *grt_program_instruction(const grt_program *program, int32_t step)
{
    const int32_t i = program->instruction_of[step];
    return i < 0 ? NULL : &program->instructions[i];
}

static grt_status bad_place(const grt_program *p, int32_t v, const char *what)
{
    return grt_fail(GRT_STATUS_INTERNAL, "program of body %d, value %d '%s': %s", p->index, v,
                    p->body->values[v].name, what);
}

static grt_status bad_step(const grt_program *p, int32_t s, const char *what)
{
    return grt_fail(GRT_STATUS_INTERNAL, "program of body %d, step %d '%s': %s", p->index, s,
                    p->body->steps[s].desc.name, what);
}

static bool home_fits_role(const grt_program *p, int32_t v)
{
    const grt_home home = p->places[v].home;
    switch (p->body->values[v].role) {
    case GRT_VALUE_CONST:
        return home == GRT_HOME_CONST;
    case GRT_VALUE_CAPTURE:
        return home == GRT_HOME_BORROWED;
    case GRT_VALUE_INPUT:
        return p->index == 0 ? home == GRT_HOME_INPUT || home == GRT_HOME_BORROWED : home == GRT_HOME_RUN;
    default: /* a step's result may be a view of anything */
        return home != GRT_HOME_BORROWED;
    }
}

static grt_status check_place(const grt_program *p, int32_t v)
{
    const grt_place *place = &p->places[v];
    const grt_plan_value *value = &p->body->values[v];
    if (!home_fits_role(p, v))
        return bad_place(p, v, "its home does not fit its role");
    if ((value->role == GRT_VALUE_STEP) != (place->maker >= 0))
        return bad_place(p, v, "a step makes it exactly if that is its role");
    if (place->has_dims != grt_place_is_fixed(place))
        return bad_place(p, v, "it has dims exactly if its home is fixed");
    if (p->index != 0 && grt_place_is_fixed(place) && place->home != GRT_HOME_CONST)
        return bad_place(p, v, "only the main body's values are fixed");
    if ((place->offset != SIZE_MAX) != (place->home == GRT_HOME_ARENA))
        return bad_place(p, v, "it has an offset exactly if it is in the arena");
    if (place->storage < 0 || place->storage >= p->body->n_values)
        return bad_place(p, v, "its storage does not exist");
    const grt_place *storage = &p->places[place->storage];
    if (storage->storage != place->storage || storage->home != place->home || storage->within != 0)
        return bad_place(p, v, "its storage is another's, or has another home");
    if (place->home == GRT_HOME_ARENA &&
        (place->offset != storage->offset + place->within || place->offset > p->arena_bytes))
        return bad_place(p, v, "it is not where its storage is, or beyond the arena's end");
    if (place->home == GRT_HOME_ARENA && value->dtype == GRT_DTYPE_STRING)
        return bad_place(p, v, "strings have no place in the arena");
    return GRT_OK;
}

/* Every value that the step touches is fixed. */
static bool is_all_fixed(const grt_program *p, const grt_plan_step *step)
{
    bool fixed = true;
    for (int32_t i = 0; i < step->n_in; i++)
        fixed = fixed && (step->in[i] < 0 || grt_place_is_fixed(&p->places[step->in[i]]));
    for (int32_t i = 0; i < step->n_out; i++)
        fixed = fixed && (step->out[i] < 0 || grt_place_is_fixed(&p->places[step->out[i]]));
    return fixed;
}

static grt_status program_check_instruction(const grt_program *p, int32_t i)
{
    const grt_instruction *ins = &p->instructions[i];
    if (!ins->run || ins->step != &p->body->steps[ins->index] || p->instruction_of[ins->index] != i)
        return bad_step(p, ins->index, "its instruction is another step's, or has no function");
    if (i > 0 && ins->index <= p->instructions[i - 1].index)
        return bad_step(p, ins->index, "instructions are out of order");
    if (ins->prepared && !is_all_fixed(p, ins->step))
        return bad_step(p, ins->index, "it is prepared, but touches values that come with the run");
    for (int32_t k = 0; k < ins->step->n_out; k++) {
        const int32_t v = ins->step->out[k];
        if (v < 0)
            continue;
        if (p->places[v].maker != ins->index)
            return bad_step(p, ins->index, "another step makes its result");
        if (ins->outputs_fixed != (p->places[v].home == GRT_HOME_ARENA))
            return bad_step(p, ins->index, "its results are in the arena exactly if they are fixed");
    }
    for (int32_t k = 0; k < ins->n_drop; k++)
        if (p->places[ins->drop[k]].home != GRT_HOME_RUN)
            return bad_step(p, ins->index, "it drops a value that does not come with the run");
    return GRT_OK;
}

/* What has no instruction has nothing to do: all that it makes is there. */
static grt_status check_skipped(const grt_program *p, int32_t s)
{
    return p->instruction_of[s] >= 0 || is_all_fixed(p, &p->body->steps[s])
               ? GRT_OK
               : bad_step(p, s, "no instruction runs it, but it touches values that come with the run");
}

static grt_status check_segments(const grt_program *p)
{
    int32_t at = 0;
    for (int32_t i = 0; i < p->n_segments; i++) {
        const grt_segment *segment = &p->segments[i];
        if (segment->first != at || segment->end <= at)
            return bad_step(p, p->instructions[at].index, "segments leave it out, or have it twice");
        for (at = segment->first; at < segment->end; at++)
            if (segment->graph && (!p->instructions[at].prepared || p->instructions[at].host))
                return bad_step(p, p->instructions[at].index, "it cannot be in a graph");
    }
    return at == p->n_instructions ? GRT_OK : bad_step(p, p->instructions[at].index, "no segment has it");
}

grt_status grt_program_check(const grt_program *p)
{
    for (int32_t v = 0; v < p->body->n_values; v++)
        GRT_TRY(check_place(p, v));
    for (int32_t i = 0; i < p->n_instructions; i++)
        GRT_TRY(program_check_instruction(p, i));
    for (int32_t s = 0; s < p->body->n_steps; s++)
        GRT_TRY(check_skipped(p, s));
    return check_segments(p);
}
