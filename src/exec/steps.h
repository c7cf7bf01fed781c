/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to run a step that is no control flow. Prepare chooses one for each instruction. */
#ifndef GRT_SRC_EXEC_STEPS_H
#define GRT_SRC_EXEC_STEPS_H

#include "src/exec/frame.h"

typedef grt_status grt_step_run(grt_frame *frame, const grt_instruction *instruction);

grt_step_run grt_step_run_prepared; /* a kernel that was prepared with the program */
/* Kernels and views whose dims come with the run: where the session runs, on its device with a shadow for the
 * host, and on the CPU with memory of the host. */
grt_step_run grt_step_run_kernel, grt_step_run_view;
grt_step_run grt_step_run_kernel_on_device, grt_step_run_view_on_device;
grt_step_run grt_step_run_kernel_on_cpu;
/* `on_host` of the instruction, with its inputs brought from the device and its results brought there. */
grt_step_run grt_step_run_with_copies;

#endif
