/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of a state: what the caller or the model's metadata names, checked against the model. */
#ifndef GRT_SRC_EXEC_STATE_PAIRS_H
#define GRT_SRC_EXEC_STATE_PAIRS_H

#include "src/exec/state_slot.h"

/* Fill in the state's slots, without memory. */
grt_status grt_state_take_pairs(const grt_session *session, const grt_state_pair *pairs, size_t n,
                                grt_state *state);
grt_status grt_state_take_declared(const grt_session *session, grt_state *state);
/* INVALID_ARGUMENT if the input takes no tensor of these dims. */
grt_status grt_state_check_dims(const grt_session *session, int32_t input, const grt_tensor *t);
/* INVALID_ARGUMENT if the tensor has no data or cannot be the content of this input. */
grt_status grt_state_check_content(const grt_session *session, int32_t input, const grt_tensor *tensor);

#endif
