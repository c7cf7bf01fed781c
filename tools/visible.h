/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that the process will not use are hidden from CUDA before it starts: it opens all that it sees. */
#ifndef TOOLS_VISIBLE_H
#define TOOLS_VISIBLE_H

/* After this, CUDA sees no device behind the last one that --device names ("cuda:0": one), and those there
 * are keep their numbers. Does nothing for other kinds, for "cuda:all", and for what is not a list of
 * numbers. In time before anything asks for devices, and before there are threads. */
void visible_limit(const char *device);

#endif
