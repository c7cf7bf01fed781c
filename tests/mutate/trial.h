/* SPDX-License-Identifier: Apache-2.0 */
/* Tries a model or a plan on the CPU: opened, optimised, run twice on small inputs. A failure must have a
 * message. */
#ifndef GRT_TESTS_MUTATE_TRIAL_H
#define GRT_TESTS_MUTATE_TRIAL_H

#include <graphrt/graphrt.h>

typedef enum trial_end {
    TRIAL_REFUSED, /* when it was opened */
    TRIAL_FAILED,  /* when it was run, with a reason */
    TRIAL_RAN,
    TRIAL_WRONG, /* a failure without a reason, or one that says that the library is at fault */
} trial_end;

typedef enum trial_inputs {
    TRIAL_TAME, /* of the dims and dtypes that the model asks for, with small numbers; the same in both runs
                 */
    TRIAL_WILD, /* drawn anew for each run: numbers at the ends of their types, NaN, bytes that are no text,
                   now and then dims or a dtype that the model does not allow */
} trial_inputs;

/* Models are compiled for `target` (NULL: the CPU) all the same. `stage` names the current stage, in case it
 * never returns. `why` has the message of a failure. */
trial_end try_model(grt_runtime *runtime, const void *bytes, size_t size, const char *target,
                    trial_inputs inputs, const char *volatile *stage, char *why, size_t why_size);

#endif
