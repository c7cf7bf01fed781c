/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded choices: the one that a library's heuristic chose, or that was measured as fastest, for an
 * operation of given sizes on a given device. They are stored across processes (src/algos/cache.h).
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

/* Where a generated kernel is from, as reports say it. */
typedef enum grt_code_origin {
    GRT_CODE_NOWHERE = 0, /* it was not asked for */
    GRT_CODE_PLAN,
    GRT_CODE_STORE,    /* the cache's file */
    GRT_CODE_COMPILED, /* here, now */
    GRT_CODE_WAITING,  /* it is interpreted until it is compiled */
    GRT_CODE_INTERPRETED,
    GRT_CODE_ORIGINS,
} grt_code_origin;
const char *grt_code_origin_name(grt_code_origin origin); /* "plan", "store", ...; "" for NOWHERE */

/* What devices are given; callers use the functions below. */
typedef struct grt_algos {
    void *(*find)(struct grt_algos *algos, const char *key, size_t *out_size);
    void (*store)(struct grt_algos *algos, const char *key, const void *data, size_t size,
                  grt_choice_source source, double cost_ms);
    void (*reject)(struct grt_algos *algos, const char *key);
    /* Those below may be NULL: there is none, and none is kept. */
    void *(*code)(struct grt_algos *algos, const char *key, size_t *out_size);
    void *(*read_code)(struct grt_algos *algos, const char *key, char **out_key, size_t *out_size);
    void (*write_code)(struct grt_algos *algos, const char *key, const void *data, size_t size, double ms);
    void (*drop_code)(struct grt_algos *algos, const char *key);
    void (*note_code)(struct grt_algos *algos, const char *key, grt_code_origin before, grt_code_origin now);
    struct grt_background *background; /* who makes code; NULL: nobody does */
} grt_algos;

/* Passed to reshape while tuning compares candidates (src/api/tune.c), NULL otherwise; kernels with
 * GRT_KERNEL_TUNES pass it to the functions below. */
typedef struct grt_algo_trial {
    /* If `lists`, the kernel queries its library for all answers and offers each usable one, as the data that
     * it would store, the library's first choice first. It continues with the first. */
    bool lists;
    /* Otherwise: the data to use for this key; NULL: the recorded one. */
    const char *key;
    const void *data;
    size_t size;
    /* Set by the functions below. */
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
/* The recorded data for the key: a copy to free(), with a 0 byte behind it; NULL if there is none. */
void *grt_device_algo_find(struct grt_device *device, grt_algo_trial *trial, const char *key,
                           size_t *out_size);
/* Record the choice of a library's heuristic. */
void grt_device_algo_store(struct grt_device *device, grt_algo_trial *trial, const char *key,
                           const void *data, size_t size);
/* What find returned is of no use here: forget it, here and in the file. */
void grt_device_algo_reject(struct grt_device *device, grt_algo_trial *trial, const char *key);
/* Keep what measuring found, which takes cost_ms. */
void grt_device_algo_store_tuned(struct grt_device *device, const char *key, const void *data, size_t size,
                                 double cost_ms);

/* What follows is for code.h, whose functions kernels use.
 *
 * Machine code that was generated for the key when the plan was made: a copy to free(), NULL if there is
 * none. Missing code is not counted, and kernels work without it. */
void *grt_device_code_find(struct grt_device *device, const char *key, size_t *out_size);
/* Code that was made on this machine, of the cache's file: its key begins with `key` and ends with what made
 * it. Of several the one that was made last. Both are copies to free(); NULL: there is none. */
void *grt_device_code_read(struct grt_device *device, const char *key, char **out_key, size_t *out_size);
/* Keep code for the next start on this machine; ms: how long making it took. Failures are warnings. */
void grt_device_code_write(struct grt_device *device, const char *key, const void *data, size_t size,
                           double ms);
/* The device does not take what read returned, or what was written. */
void grt_device_code_drop(struct grt_device *device, const char *key);
/* For reports: where the kernel for this key is from, and where it was before. */
void grt_device_code_note(struct grt_device *device, const char *key, grt_code_origin before,
                          grt_code_origin now);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
