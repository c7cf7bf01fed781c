/* SPDX-License-Identifier: Apache-2.0 */
/* Where a value of a body lives: decided once, when its program is prepared.
 *
 *   home      its memory is                                           and holds its content
 *   RUN       allocated in the run by the step that makes it, or      until its last reader in the run
 *             shared with the frame around (inputs of bodies)
 *   BORROWED  another owner's, taken over as it stands: captures,     while the run lasts
 *             and inputs that have no dims (sequences, strings)
 *   CONST     the session's weights                                   always
 *   PREPARED  the program's: it follows from the dims (hoist.h)       as long as the program
 *   INPUT     the caller's input, or its copy on the device           while the run lasts
 *   ARENA     in the context's arena, at an offset                    until another value takes the place
 *
 * The first two come with the run, the others are fixed: a fixed value has dims before any run, and its
 * address follows from the arena's base and the pointers that are bound. So a step all of whose values are
 * fixed can be prepared once, and on a device captured into a graph. grt_program_check says what else holds.
 *
 * State that stays between runs is bound as the caller's inputs and outputs are (state.h); sessions of
 * several devices will name the device here. */
#ifndef GRT_SRC_EXEC_PLACE_H
#define GRT_SRC_EXEC_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum grt_home {
    GRT_HOME_RUN = 0,
    GRT_HOME_BORROWED,
    GRT_HOME_CONST,
    GRT_HOME_PREPARED,
    GRT_HOME_INPUT,
    GRT_HOME_ARENA,
} grt_home;

typedef struct grt_place {
    grt_home home;
    bool has_dims;       /* from before the run on */
    bool made_on_host;   /* by a step that the CPU runs, in a session on a device */
    bool read_on_device; /* by a step that the device runs */
    int32_t maker;       /* the step; -1: none of this body */
    int32_t storage;     /* the value whose memory it shares, as a view or in place; else itself */
    size_t within;       /* bytes from the beginning of that memory; not 0 for parts */
    size_t offset;       /* ARENA: in the arena; else SIZE_MAX */
} grt_place;

static inline bool grt_place_is_fixed(const grt_place *place)
{
    return place->home >= GRT_HOME_CONST;
}

/* No run writes it. */
static inline bool grt_place_is_constant(const grt_place *place)
{
    return place->home == GRT_HOME_CONST || place->home == GRT_HOME_PREPARED;
}

#endif
