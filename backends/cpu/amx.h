/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of AMX: registers of up to 16 rows of 64 bytes, whose instructions multiply a tile of A by one of B
 * and add to one of sums. Here is what all products in tiles share: the permission to use them, and the
 * shapes that a thread gives its tiles. amx_instructions.h has the instructions.
 *
 * Tiles belong to a thread. A product shapes them in each thread that takes part in it and releases them in
 * the same thread before it returns: none are left to the caller, nor to a process that it forks. */
#ifndef GRT_BACKENDS_CPU_AMX_H
#define GRT_BACKENDS_CPU_AMX_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CPU_AMX_TILE_ROWS = 16,
    CPU_AMX_ROW_BYTES = 64,
    CPU_AMX_BLOCK_ROWS = 2 * CPU_AMX_TILE_ROWS /* of a block of two by two tiles of sums */
};

/* What the instruction that sets the tiles' shapes reads: "palette 1" of the architecture. */
typedef struct cpu_amx_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} cpu_amx_shapes;

_Static_assert(sizeof(cpu_amx_shapes) == 64, "the instruction reads 64 bytes");

/* True if processor and system have tiles for products of bytes. Nothing is asked of the system. */
bool cpu_amx_offered(void);
/* And products of bfloat16 in tiles. */
bool cpu_amx_has_bf16(void);
/* True if the system lets this process use them: the first call asks it, for all threads of the process,
 * after which Linux refuses signal stacks too small for tiles. Kernels ask cpu_isa_may_use_tiles (isa.h)
 * instead, which may be capped. */
bool cpu_amx_permitted(void);

/* For a block of 1 to CPU_AMX_BLOCK_ROWS rows: tiles 0 and 1 are sums of its upper 16 rows, 2 and 3 those of
 * the rest; 4 and 5 hold these rows of A, 6 and 7 two panels of B. Those of the rest have no shape where
 * there is none, and must not be touched. */
cpu_amx_shapes cpu_amx_shapes_of(int rows);

/* Gives this thread's tiles these shapes, unless they have them; what they hold is unspecified then. Only
 * where the process has tiles. */
void cpu_amx_shape(int rows);

/* Releases this thread's tiles, if they have shapes. While it holds any, a thread costs more to switch, and
 * its processor does not rest as deeply. */
void cpu_amx_release(void);

#endif
