/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every suite that tests/sources.mk lists. usage: unit [SUITE...], or
 * unit --odd, unit --even: every other suite, so that two processes share them; or
 * unit --isa: the levels of GRAPHRT_CPU_ISA that this machine has, lowest first, in one line. */
#include "backends/cpu/isa.h"
#include "backends/registry.h"
#include "tests/mirror/mirror.h"
#include "tests/unit/files.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(file) Suite *suite_##file(void);
#include "unit_suites.inc"
#undef X

static const struct {
    const char *name;
    Suite *(*create)(void);
} suites[] = {
#define X(file) {#file, suite_##file},
#include "unit_suites.inc"
#undef X
};
enum { N_SUITES = sizeof suites / sizeof *suites };

static bool wanted(size_t suite, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], suites[suite].name) || !strcmp(argv[i], suite % 2 ? "--odd" : "--even"))
            return true;
    return argc == 1;
}

static int list_levels(void)
{
    for (int level = CPU_ISA_BASE; level <= (int)cpu_isa_of_machine(); level++)
        printf("%s%s", level == CPU_ISA_BASE ? "" : " ", cpu_isa_name((cpu_isa)level));
    puts("");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    /* For tests that hang. Check's own 4 seconds are too few on a machine that has other things to do. */
    setenv("CK_DEFAULT_TIMEOUT", "120", 0);
    if (argc == 2 && !strcmp(argv[1], "--isa"))
        return list_levels();
    if (grt_backend_register(&grt_backend_mirror) != GRT_OK) {
        puts(grt_last_error());
        return EXIT_FAILURE;
    }
    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; i < N_SUITES; i++)
        if (wanted(i, argc, argv))
            srunner_add_suite(runner, suites[i].create());
    files_begin();
    srunner_run_all(runner, CK_NORMAL);
    files_end();
    int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    printf("%d passed, %d failed\n", run - failed, failed);
    srunner_free(runner);
    return failed || !run ? EXIT_FAILURE : EXIT_SUCCESS;
}
