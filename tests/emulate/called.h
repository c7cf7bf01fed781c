/* SPDX-License-Identifier: Apache-2.0 */
/* One file of backends/cuda/ops/, translated for the host and opened; and calls of its kernels. */
#ifndef GRT_TESTS_EMULATE_CALLED_H
#define GRT_TESTS_EMULATE_CALLED_H

#include "backends/kernel.h"

typedef struct emulated_file {
    void *opened;
    const grt_kernel_table *table;
    bool *falling;              /* threads run from the last to the first */
    const char **wrong;         /* of a launch; NULL: nothing */
    const char *(*fault)(void); /* what kernels told of since the last call, as the run's error; NULL */
} emulated_file;

/* `name` without ".cu"; headers that launch kernels are translated too, into `folder`. */
bool emulate_open(const char *folder, const char *name, emulated_file *out_file);
void emulate_close(emulated_file *file);

/* Outputs are cleared values whose dtypes are set. Workspace lies between guards and is not zero; its size
 * comes back. An error's text is grt_last_error's. */
grt_status emulate_call(const emulated_file *file, const grt_op_desc *desc, const grt_tensor *const *in,
                        int32_t n_in, grt_value *out, int32_t n_out, size_t *out_workspace);

#endif
