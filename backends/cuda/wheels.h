/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries where Python's package installers put them: nvidia/NAME/lib, in the directory that has
 * this module's package. */
#ifndef GRT_BACKENDS_CUDA_WHEELS_H
#define GRT_BACKENDS_CUDA_WHEELS_H

/* The library of that file name, opened, if a wheel beside this module's has it; else NULL. */
void *cuda_wheels_open(const char *name);

#endif
