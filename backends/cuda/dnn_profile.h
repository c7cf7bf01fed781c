/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's text of a plan names the GPU that it was made for, down to the driver, and refuses every other; the
 * engine and its settings, which are all that was chosen, serve all GPUs of one compute capability. */
#ifndef GRT_BACKENDS_CUDA_DNN_PROFILE_H
#define GRT_BACKENDS_CUDA_DNN_PROFILE_H

/* The text with `profile`, an object, in place of the GPU that it names; malloc'ed. NULL where it names none,
 * or when out of memory: then it is to be taken as it is. */
char *cuda_dnn_profile_replace(const char *text, const char *profile);

#endif
