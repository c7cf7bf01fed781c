/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's text of a plan names the GPU and driver that it was made for, and cuDNN refuses it elsewhere,
 * although engine and settings depend on the compute capability only. */
#ifndef GRT_BACKENDS_CUDA_DNN_PROFILE_H
#define GRT_BACKENDS_CUDA_DNN_PROFILE_H

/* The text with its GPU replaced by the object `profile`; malloc'ed. NULL if it names none or when out of
 * memory: use the text unchanged. */
char *cuda_dnn_profile_replace(const char *text, const char *profile);

#endif
