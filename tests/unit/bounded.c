/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* wait4 */
#include "tests/unit/bounded.h"

#include <check.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

bool bounded_measures(void)
{
    return !SANITIZED;
}

bounded_use bounded_run(int (*body)(void *user), void *user, unsigned cpu_seconds, size_t address_space)
{
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        const struct rlimit cpu = {cpu_seconds, cpu_seconds}, memory = {address_space, address_space},
                            none = {0, 0};
        setrlimit(RLIMIT_CPU, &cpu);
        setrlimit(RLIMIT_CORE, &none);
        if (address_space && !SANITIZED)
            setrlimit(RLIMIT_AS, &memory);
        _exit(body(user));
    }
    int status;
    struct rusage usage;
    ck_assert_int_eq(wait4(pid, &status, 0, &usage), pid);
    return (bounded_use){
        .status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
        .peak_bytes = (size_t)usage.ru_maxrss << 10,
    };
}
