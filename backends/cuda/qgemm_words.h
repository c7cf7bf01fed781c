/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes with three or four channels: a pixel is a word in shared memory, so that registers of
 * tensor cores are loaded as they are. For devices of compute capability 9.0. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_WORDS_H
#define GRT_BACKENDS_CUDA_QGEMM_WORDS_H

#include "backends/cuda/qgemm_sizes.h"
#include "backends/cuda/qpack.h"

/* Of a filter of `rows` lines with so many taps of so many channels; 0: they do not fit words. */
size_t cuda_qwords_bytes(int64_t rows, int64_t taps, int64_t channels);
/* packed: filters of [rows][taps, channels], whose rows are `pitch` bytes apart. */
void cuda_qwords_pack(const int8_t *packed, int64_t pitch, int64_t filters, int64_t rows, int64_t taps,
                      int64_t channels, int8_t *to);

/* g: the product of unfolded lines, whose taps are those of `lines`. */
bool cuda_qgemm_words_fits(const cuda_qgemm *g, const cuda_qlines *lines);
/* x: the image. words: what cuda_qwords_pack makes. */
grt_status cuda_qgemm_words_enqueue(const cuda_qgemm *g, const cuda_qlines *lines, const void *x,
                                    const void *words, const void *residual, const cuda_qfinish *finish,
                                    void *y, cudaStream_t stream);

#endif
