# SPDX-License-Identifier: Apache-2.0
"""older_glibc.py on a library and a program that use what moved, what changed and what is new since manylinux_2_28. Run by python/test.sh."""

import subprocess
import sys
import tempfile
from pathlib import Path

import older_glibc

LIBRARY = """
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
static void *answer(void *value) { return value; }
double try_all(double x);
double try_all(double x) /* 42 where all is well: exp and pow changed, threads and dlsym moved, stat is new */
{
    pthread_t thread;
    void *found = NULL;
    struct stat about;
    cpu_set_t cpus;
    if (pthread_create(&thread, NULL, answer, &about) || pthread_join(thread, &found) || found != (void *)&about) return 1;
    if (pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 1) return 2;
    if (stat("/", &about) || !S_ISDIR(about.st_mode) || !dlsym(RTLD_DEFAULT, "malloc")) return 3;
    return log(exp(x)) + pow(x, 0.5) - pow(x, 0.5) + 41;
}
"""
PROGRAM = """
double try_all(double x);
int main(void) { double got = try_all(1.0); return got > 41.999 && got < 42.001 ? 0 : 1; }
"""
TOO_NEW = "#include <unistd.h>\nvoid shut(void);\nvoid shut(void) { closefrom(3); }\n"


def compiled(directory, name, source, *words):
    (directory / "source.c").write_text(source)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-fno-builtin", "-o", directory / name, directory / "source.c", *words], check=True)
    return directory / name


def main():
    with tempfile.TemporaryDirectory() as scratch:
        here, provided = Path(scratch), older_glibc.Provided()
        names = older_glibc.compile_added(here / older_glibc.ADDED)
        library = compiled(here, "libtried.so", LIBRARY, "-shared", "-fPIC", "-lm")
        program = compiled(here, "program", PROGRAM, f"-L{here}", "-ltried", "-Wl,-rpath,$ORIGIN")
        assert any(older_glibc._is_too_new(version.name) for version in older_glibc.Elf(library).versions), "this system is old itself"
        for path in (library, program, here / older_glibc.ADDED):
            older_glibc.set_back(path, provided, names)
            left = [version.name for version in older_glibc.Elf(path).versions if older_glibc._is_too_new(version.name)]
            assert not left, f"{path.name} still wants {left}"
        subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", library], check=True)
        subprocess.run([program], check=True)
        try:
            older_glibc.set_back(compiled(here, "libnew.so", TOO_NEW, "-shared", "-fPIC"), provided, names)
        except older_glibc.TooNew as error:
            assert "closefrom@GLIBC_2.34" in str(error), error
        else:
            sys.exit("closefrom is newer than manylinux_2_28, and was taken")


main()
