/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop, Scan and SequenceMap: bodies run by the executor, so that every backend has them. On the host:
 * inputs and results are its side of the values. Prepare has made the bodies' frames. */
#ifndef GRT_SRC_EXEC_CONTROL_FLOW_H
#define GRT_SRC_EXEC_CONTROL_FLOW_H

#include "src/exec/frame.h"

grt_status grt_control_run_if(grt_frame *frame, const grt_instruction *instruction);
grt_status grt_control_run_loop(grt_frame *frame, const grt_instruction *instruction);
grt_status grt_control_run_scan(grt_frame *frame, const grt_instruction *instruction);
grt_status grt_control_run_sequence_map(grt_frame *frame, const grt_instruction *instruction);

#endif
