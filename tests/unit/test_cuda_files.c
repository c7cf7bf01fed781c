/* SPDX-License-Identifier: Apache-2.0 */
/* Code and algorithms of plans are checked before GPU libraries read them: truncated or malformed ones are
 * refused.
 */
#include "backends/cuda/cubin.h"
#include "backends/cuda/json.h"

#include <check.h>
#include <linux/elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_object(const char *text)
{
    return cuda_json_is_object(text, strlen(text));
}

START_TEST(objects)
{
    ck_assert(is_object("{}"));
    ck_assert(is_object(" {\"a\" : [ ] , \"b\":{\"c\":[1,-2.5e-3,0,0.5E+7,true,false,null,\"\"]}}\n"));
    ck_assert(is_object("{\"\xc3\xa4\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\":{}}"));
}
END_TEST

START_TEST(no_objects)
{
    static const char *const texts[] = {
        "",
        "null",
        "[]",
        "\"\"",
        "{",
        "}",
        "{}}",
        "{}{}",
        "{} x",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 2}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":- 1}",
        "{\"a\":nan}",
        "{\"a\":[}",
        "{\"a\":[1,]}",
        "{\"a\":[1}]",
        "{\"a\":tru}",
        "{\"a\":\"",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\u12",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(!is_object(texts[i]), "'%s'", texts[i]);
    ck_assert(!cuda_json_is_object("{}\0", 3));
    ck_assert(!cuda_json_is_object("{\"a\":\"\0\"}", 9));
}
END_TEST

/* Depth and size are bounded: readers often recurse. */
START_TEST(bounds)
{
    static char text[CUDA_JSON_MOST + 2];
    for (int depth = CUDA_JSON_DEEPEST - 1; depth <= CUDA_JSON_DEEPEST; depth++) {
        char *at = text;
        at += strlen(strcpy(at, "{\"a\":"));
        memset(at, '[', (size_t)depth);
        memset(at + depth, ']', (size_t)depth);
        strcpy(at + 2 * (size_t)depth, "}");
        ck_assert_int_eq(is_object(text), depth < CUDA_JSON_DEEPEST);
    }
    memset(text, ' ', sizeof text);
    memcpy(text, "{}", 2);
    ck_assert(cuda_json_is_object(text, CUDA_JSON_MOST));
    ck_assert(!cuda_json_is_object(text, CUDA_JSON_MOST + 1));
}
END_TEST

START_TEST(cut_anywhere)
{
    static const char text[] = "{\"a\":[1.5e3,{\"b\":\"\\u00e4\"},true],\"c\":null}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *exact = malloc(n ? n : 1); /* sanitizers see what is read behind it */
        memcpy(exact, text, n);
        ck_assert(!cuda_json_is_object(exact, n));
        free(exact);
    }
    ck_assert(is_object(text));
}
END_TEST

/* Header, names, code, and the table of sections behind them. */
typedef struct cubin {
    Elf64_Ehdr header;
    char names[16];
    char code[64];
    Elf64_Shdr sections[4];
    Elf64_Phdr segment;
} cubin;

static cubin make(void)
{
    cubin c = {.header = {.e_machine = 190,
                          .e_shoff = offsetof(cubin, sections),
                          .e_shnum = 4,
                          .e_shentsize = sizeof(Elf64_Shdr),
                          .e_shstrndx = 1,
                          .e_phoff = offsetof(cubin, segment),
                          .e_phnum = 1,
                          .e_phentsize = sizeof(Elf64_Phdr)},
               .names = "\0.text"};
    memcpy(c.header.e_ident, ELFMAG "\2\1", SELFMAG + 2);
    c.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(cubin, names), .sh_size = 16};
    c.sections[2] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = offsetof(cubin, code), .sh_size = 64};
    c.sections[3] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_offset = 1 << 20, .sh_size = 1 << 30};
    c.segment = (Elf64_Phdr){.p_offset = offsetof(cubin, code), .p_filesz = 64};
    return c;
}

START_TEST(whole_code)
{
    cubin c = make();
    ck_assert(cuda_cubin_is_whole(&c, sizeof c));
    for (size_t n = 0; n < sizeof c; n++) {
        char *exact = malloc(n ? n : 1);
        memcpy(exact, &c, n);
        ck_assert(!cuda_cubin_is_whole(exact, n));
        free(exact);
    }
}
END_TEST

START_TEST(crooked_code)
{
#define REFUSED(change)                                \
    do {                                               \
        cubin c = make();                              \
        change;                                        \
        ck_assert(!cuda_cubin_is_whole(&c, sizeof c)); \
    } while (0)
    REFUSED(c.header.e_ident[0] = 0);
    REFUSED(c.header.e_ident[EI_CLASS] = 1);
    REFUSED(c.header.e_ident[EI_DATA] = 2);
    REFUSED(c.header.e_machine = 62);
    REFUSED(c.header.e_shnum = 0);
    REFUSED(c.header.e_shnum = 0xffff);
    REFUSED(c.header.e_shentsize = 63);
    REFUSED(c.header.e_shstrndx = 4);
    REFUSED(c.header.e_shoff = UINT64_MAX);
    REFUSED(c.header.e_shoff = sizeof c);
    REFUSED(c.header.e_phoff = UINT64_MAX - 8);
    REFUSED(c.header.e_phnum = 0xffff);
    REFUSED(c.header.e_phentsize = 1);
    REFUSED(c.sections[2].sh_size = sizeof c);
    REFUSED(c.sections[2].sh_offset = UINT64_MAX - 3);
    REFUSED(c.sections[1].sh_size = 2); /* names that do not end */
    REFUSED(c.segment.p_filesz = UINT64_MAX);
    REFUSED(c.segment.p_offset = sizeof c - 63);
}
END_TEST

Suite *suite_test_cuda_files(void)
{
    Suite *suite = suite_create("cuda files");
    TCase *tc = tcase_create("cuda files");
    tcase_add_test(tc, objects);
    tcase_add_test(tc, no_objects);
    tcase_add_test(tc, bounds);
    tcase_add_test(tc, cut_anywhere);
    tcase_add_test(tc, whole_code);
    tcase_add_test(tc, crooked_code);
    suite_add_tcase(suite, tc);
    return suite;
}
