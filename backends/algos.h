/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms that were chosen before: which one a library picked, or a measurement found best, for an
 * operation of given sizes on a given device. What is stored outlives the process (src/algos/cache.h), so
 * that the next one asks nobody.
 *
 * In a kernel's reshape (never in run):
 *
 * @code
 *     grt_text key = {0};
 *     grt_device_algo_key(device, "Conv", &key);    "op=Conv;gpu=NVIDIA H200;sm=90;driver=13000;"
 *     grt_text_add(&key, "cudnn=%zu;x=float16[8x64x56x56];...", version);
 *     while ((data = grt_device_algo_find(device, trial, grt_text_get(&key), &size)) &&
 *            !build_from(data, size)) {
 *         grt_device_algo_reject(device, trial, grt_text_get(&key));
 *         free(data);
 *     }
 *     if (!data) {
 *         ...ask the library's heuristic...
 *         grt_device_algo_store(device, trial, grt_text_get(&key), chosen, chosen_size);
 *     }
 * @endcode
 *
 * The loop: behind a choice of the plan's that the library refuses there may be one of the cache's.
 *
 * A key is text of parts `name=value;` in an order of the kernel's own, but the version of its library comes
 * first. It must hold everything that decides the choice: dtypes, full shapes and strides, attributes,
 * epilogue, math mode, the library's version at run time. The data is a blob that only the kernel
 * understands; it must survive being of an older build (begin it with a version).
 *
 * Any thread may call these. Without a cache, and when memory is short, find finds nothing and store forgets.
 */
#ifndef GRT_BACKENDS_ALGOS_H
#define GRT_BACKENDS_ALGOS_H

#include "src/base/choice.h"
#include "src/base/text.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

struct grt_device;

/* What devices are given; callers use the functions below. */
typedef struct grt_algos {
    void *(*find)(struct grt_algos *algos, const char *key, size_t *out_size);
    void (*store)(struct grt_algos *algos, const char *key, const void *data, size_t size,
                  grt_choice_source source, double cost_ms);
    void (*reject)(struct grt_algos *algos, const char *key);
    void *(*code)(struct grt_algos *algos, const char *key,
                  size_t *out_size); /* may be NULL: there is none */
} grt_algos;

/* What a reshape is given while candidates are compared (src/api/tune.c), NULL otherwise: kernels of rows
 * with GRT_KERNEL_TUNES hand it on to the functions below. */
typedef struct grt_algo_trial {
    /* A kernel that sees `lists` asks its library for all answers, not for the first, and offers each that it
     * could use: the library's first choice first, the same data that it would store. Then it goes on with
     * the first. */
    bool lists;
    /* Otherwise: what is found for this key. NULL: what is stored. */
    const char *key;
    const void *data;
    size_t size;
    /* Told by the functions below. */
    bool refused;                                                /* the kernel rejected that data */
    void (*uses)(struct grt_algo_trial *trial, const char *key); /* a choice for this key was found or made */
    bool (*offer)(struct grt_algo_trial *trial, const char *key, const void *data, size_t size);
} grt_algo_trial;

static inline bool grt_algo_trial_lists(const grt_algo_trial *trial)
{
    return trial && trial->lists;
}
/* One more candidate; false: no more are wanted. */
bool grt_algo_trial_offer(grt_algo_trial *trial, const char *key, const void *data, size_t size);

/* Begin a key: the op and the parts that name the device and its driver. */
void grt_device_algo_key(struct grt_device *device, const char *op, grt_text *key);
/* What is stored for the key: a copy to free(), with a 0 byte behind it. NULL if nothing is. */
void *grt_device_algo_find(struct grt_device *device, grt_algo_trial *trial, const char *key,
                           size_t *out_size);
/* Keep what a library's heuristic chose. */
void grt_device_algo_store(struct grt_device *device, grt_algo_trial *trial, const char *key,
                           const void *data, size_t size);
/* What find returned is of no use here: forget it, here and in the file. */
void grt_device_algo_reject(struct grt_device *device, grt_algo_trial *trial, const char *key);
/* Keep what measuring found, which takes cost_ms. */
void grt_device_algo_store_tuned(struct grt_device *device, const char *key, const void *data, size_t size,
                                 double cost_ms);

/* Machine code that was generated for the key when the plan was made: a copy to free(), NULL if there is
 * none. Nobody generates code for devices that run: what is missing is not counted, and kernels do without.
 */
void *grt_device_code_find(struct grt_device *device, const char *key, size_t *out_size);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
