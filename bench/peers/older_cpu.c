/* SPDX-License-Identifier: Apache-2.0 */
/* For measurements only: answers CPUID as a processor without AVX-512 would, to code whose CPUID instructions
 * were replaced by UD2 (older_cpu.py). Preloaded. PEER_CPU says what is left: avx2; avx512, AVX-512 without
 * products of 8 and 16 bits; or avx512_vnni, with those of 8 bits, but without those of 16 and AMX. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { INSTRUCTION = 2 /* bytes, of UD2 and of CPUID */ };

#define BIT(n) (1u << (n))

/* What leaf 7 says beyond AVX2: of sub-leaf 0 EBX, ECX and EDX, of sub-leaf 1 EAX and EDX. */
typedef struct hidden {
    uint32_t b, c, d, a1, d1;
} hidden;

/* BF16, FP16 and AMX. */
static const hidden of_halves = {.d = BIT(22) | BIT(23) | BIT(24) | BIT(25), .a1 = BIT(5) | BIT(21)};
/* VNNI with AVX-512, AVX-VNNI and its kin. */
static const hidden of_bytes = {.c = BIT(11), .a1 = BIT(4) | BIT(23), .d1 = BIT(4) | BIT(5) | BIT(10)};
/* AVX-512 F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT;
 * AVX10.
 */
static const hidden of_avx512 = {.b = BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) |
                                      BIT(31),
                                 .c = BIT(1) | BIT(6) | BIT(12) | BIT(14),
                                 .d = BIT(2) | BIT(3) | BIT(8),
                                 .d1 = BIT(19)};

static hidden hide;

/* In a signal handler: nothing here but registers. */
static void answer(int signal_number, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)(uintptr_t)r[REG_RIP];
    (void)info;
    if (at[0] != 0x0f || at[1] != 0x0b) {
        signal(signal_number, SIG_DFL); /* a real one: it comes again, and ends the program */
        return;
    }
    const uint32_t leaf = (uint32_t)r[REG_RAX], part = (uint32_t)r[REG_RCX];
    uint32_t a, b, c, d;
    __cpuid_count(leaf, part, a, b, c, d);
    if (leaf == 7 && part == 0) {
        b &= ~hide.b;
        c &= ~hide.c;
        d &= ~hide.d;
    } else if (leaf == 7 && part == 1) {
        a &= ~hide.a1;
        d &= ~hide.d1;
    }
    r[REG_RAX] = a;
    r[REG_RBX] = b;
    r[REG_RCX] = c;
    r[REG_RDX] = d;
    r[REG_RIP] += INSTRUCTION;
}

static void hide_also(const hidden *more)
{
    hide.b |= more->b;
    hide.c |= more->c;
    hide.d |= more->d;
    hide.a1 |= more->a1;
    hide.d1 |= more->d1;
}

__attribute__((constructor)) static void install(void)
{
    const char *level = getenv("PEER_CPU");
    hide = of_halves;
    if (!level || strcmp(level, "avx512_vnni") != 0)
        hide_also(&of_bytes);
    if (!level || !strcmp(level, "avx2"))
        hide_also(&of_avx512);
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigaction(SIGILL, &action, NULL);
}
