/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: how a backend implements an op. One row per op, found by domain and name.
 *
 * Life of a kernel: `create` once per session (read attributes, pack weights), `reshape` once per combination
 * of input dims (choose an algorithm, size the workspace), `run` any number of times (no allocation, no lock,
 * no look-up). The state made by create is shared by all contexts and threads and never written after create;
 * what reshape makes belongs to one context. */
#ifndef GRT_BACKENDS_KERNEL_H
#define GRT_BACKENDS_KERNEL_H

#include "backends/code.h"
#include "src/base/account.h"
#include "src/base/op_desc.h"
#include "src/base/packing.h"
#include "src/base/text.h"
#include "src/base/value.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* What is known when a kernel is looked for or created. Tensors: dtype NONE where omitted; rank -1, dims -1
 * where unknown; data set for constants (host memory, lives as long as the session). */
typedef struct grt_kernel_node {
    const grt_op_desc *desc;
    int32_t n_in, n_out;
    const grt_tensor *in, *out;
    const grt_packing *packing; /* per input, layout of `data`; NULL: all plain */
    int32_t threads;
    struct grt_device *device; /* NULL while compiling */
    grt_account *account;      /* of the memory that create keeps there; NULL: nobody counts */
} grt_kernel_node;

/* Layout of input i; NULL: plain. */
static inline const grt_packing *grt_node_packing(const grt_kernel_node *node, int32_t i)
{
    return node->packing && grt_is_packed(&node->packing[i]) ? &node->packing[i] : NULL;
}

static inline bool grt_node_has(const grt_kernel_node *node, int32_t i)
{
    return i < node->n_in && node->in[i].dtype != GRT_DTYPE_NONE;
}

/* Memory of the host for what create keeps, such as weights laid out anew: 64-byte aligned, freed by
 * grt_account_free. Whatever grows with constants is allocated so, as a session's limit and what is predicted
 * of it know of kernels by their account alone. */
grt_status grt_kernel_alloc(const grt_kernel_node *node, size_t bytes, void **out_data);

/* Passed to reshape: concrete dims of all tensors; NULL where omitted. Constants and small integer inputs
 * known before the run have data (in host memory, whatever the device); others have none, and run reads them.
 */
typedef struct grt_reshape {
    const grt_op_desc *desc;
    void *state; /* from create */
    const grt_tensor *const *in;
    const grt_tensor *const *out;
    int32_t n_in, n_out;
    int32_t threads;
    struct grt_device *device;
    grt_account *account;         /* as in a node, of what the shape keeps */
    struct grt_algo_trial *trial; /* while candidates are compared: see algos.h; else NULL */
    /* filled by the kernel */
    void *shape;             /* what it prepared, for run and release_shape */
    size_t workspace_bytes;  /* 64-byte aligned scratch that run wants */
    grt_code_when code_when; /* what the session wants of generated kernels; the caller's, as those above */
    /* Filled by the kernel: its generated one, of the shape's. Once that is there, run enqueues
     * something else. NULL: there is none. */
    const struct grt_code *code;
} grt_reshape;

/* As grt_kernel_alloc, for what a shape keeps. */
grt_status grt_reshape_alloc(const grt_reshape *reshape, size_t bytes, void **out_data);

/* Input i; NULL where omitted. */
static inline const grt_tensor *grt_reshape_in(const grt_reshape *reshape, int32_t i)
{
    return i < reshape->n_in ? reshape->in[i] : NULL;
}

struct grt_run_hooks;

/* Passed to run. Omitted tensors are NULL; each `in[i]` is also a grt_value (see value.h), so that kernels
 * with GRT_KERNEL_VALUES may cast. */
typedef struct grt_run {
    const grt_op_desc *desc; /* for messages only */
    void *state, *shape, *workspace;
    const grt_tensor *const *in;
    grt_tensor *const *out;
    int32_t n_in, n_out;
    int32_t threads;
    const struct grt_run_hooks *hooks;
    struct grt_device *device;
    void *stream; /* of the device; NULL on the CPU */
} grt_run;

/* Input i; NULL where omitted. */
static inline const grt_tensor *grt_run_in(const grt_run *run, int32_t i)
{
    return i < run->n_in ? run->in[i] : NULL;
}

/* Its memory; NULL where omitted. */
static inline const void *grt_run_data(const grt_run *run, int32_t i)
{
    return grt_run_in(run, i) ? run->in[i]->data : NULL;
}

/* What the executor offers to kernels at run time. */
typedef struct grt_run_hooks {
    /* GRT_KERNEL_DYNAMIC: give output i its dims and memory (host or device, as the device's). Sets
     * out[i]->data. */
    grt_status (*alloc_output)(const grt_run *run, int32_t i, int32_t rank, const int64_t *dims);
    /* Memory for the bytes of string elements; lives until the context's next run. NULL when out of memory.
     */
    char *(*alloc_bytes)(const grt_run *run, size_t bytes);
    void *executor;
    /* What the device's backend keeps for this context, from its first use on: one run at a time uses it.
     * grt_device_local_release gives it back. NULL: there is no context, nothing is kept from one
     * run to the next. */
    void **local;
} grt_run_hooks;

typedef enum grt_kernel_flags {
    GRT_KERNEL_DYNAMIC =
        1 << 8, /* output dims depend on data: run calls hooks->alloc_output for every present output */
    GRT_KERNEL_VALUES =
        1 << 9, /* inputs or outputs may be sequences or optionals; outputs are cleared grt_values to fill */
    GRT_KERNEL_TUNES = 1 << 10, /* reshape chooses among algorithms (algos.h) and heeds its `trial` */
    GRT_KERNEL_CHOOSES =
        1 << 11, /* create and reshape work on described devices too, and store choices there */
} grt_kernel_flags;
/* Flag: reshape reads the values of input i (i < 8), which are small, and finds them in host memory. Where
 * they are not known before the run, the step waits for them. */
#define GRT_KERNEL_READS(i) (1u << (16 + (i)))
/* Flag: output 0 may overwrite input i (i < 8) if that dies here, and has as many elements as output 0 and of
 * the same size, so that no element of it is read for another element of the output. */
#define GRT_KERNEL_IN_PLACE(i) (1u << (i))

typedef struct grt_kernel_row {
    const char *domain, *op;
    /* Accepted dtypes of inputs 0..3; inputs from 4 on follow the last non-zero set; 0 accepts any. */
    grt_dtype_set types[4];
    uint32_t flags;
    /* Further conditions; on false says why and what would be supported. NULL: none. */
    bool (*supports)(const grt_kernel_node *node, grt_text *why);
    /* Optional, for the compiler: constant input i, plain in `node`, as create would lay it out, so that
     * sessions find it ready. A kernel with this entry takes packed constants of any format of its backend at
     * create (of an older library or for another processor: it repacks). *out_data is malloc'ed; out_packing
     * stays as it is, "", if i is best left plain. */
    grt_status (*pack)(const grt_kernel_node *node, int32_t i, grt_packing *out_packing, void **out_data);
    /* NULL: no state. */
    grt_status (*create)(const grt_kernel_node *node, void **out_state);
    void (*destroy)(void *state);
    /* NULL: nothing to prepare. */
    grt_status (*reshape)(grt_reshape *reshape);
    void (*release_shape)(void *shape);
    grt_status (*run)(const grt_run *run);
} grt_kernel_row;

typedef struct grt_kernel_table {
    const grt_kernel_row *rows;
    size_t n;
} grt_kernel_table;

/* First row of `op` whose dtypes and `supports` fit; NULL if none, then `why` (may be NULL) lists what rows
 * there are want. */
const grt_kernel_row *grt_kernel_find(const grt_kernel_table *const *tables, size_t n_tables,
                                      const grt_kernel_node *node, grt_text *why);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
