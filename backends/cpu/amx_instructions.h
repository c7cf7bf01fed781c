/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions on tiles (amx.h). They need no target of the compiler's, which knows no tiles: their
 * numbers are part of the text. Loops around them take the operations by these names, so that tests can put a
 * model in C in their place (tests/unit/tile_model.inc). */
#ifndef GRT_BACKENDS_CPU_AMX_INSTRUCTIONS_H
#define GRT_BACKENDS_CPU_AMX_INSTRUCTIONS_H

#include "backends/cpu/amx.h"

#define TILE_SHAPE(rows)            cpu_amx_shape(rows)
#define TILE_ZERO(to)               __asm__ volatile("tilezero %%tmm" #to :::)
#define TILE_LOAD(to, p, stride)    TILE_MOVE("tileloadd (%0,%1,1), %%tmm" #to, p, stride)
#define TILE_STORE(from, p, stride) TILE_MOVE("tilestored %%tmm" #from ", (%0,%1,1)", p, stride)
#define TILE_MOVE(text, p, stride)  __asm__ volatile(text ::"r"(p), "r"((int64_t)(stride)) : "memory")

/* A row of A and a column of B have four numbers in a group, unsigned bytes of A times signed ones of B; or
 * two of bfloat16 (where cpu_isa_has_amx_bf16()), whose sums are float32. */
#define TILE_DOT_BYTES(to, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #to :::)
#define TILE_DOT_BF16(to, a, b)  __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #to :::)

#endif
