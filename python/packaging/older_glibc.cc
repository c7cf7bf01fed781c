/* SPDX-License-Identifier: Apache-2.0 */
/* What the C and C++ libraries of manylinux_2_28 lack, for wheels that are linked on newer systems:
 * older_glibc.py adds it to them. Each function does with older means what its namesake does. The map beside
 * this file gives the names a version of their own, so that no reference to the system's functions ends here.
 */
#include <new>
#include <sstream>

struct stat; /* passed on */

/* Until 2.33 these were inline functions around versioned ones; 1 is the version of struct stat on x86-64. */
extern "C" {
int xstat(int version, const char *path, struct stat *out) __asm__("grt_xstat");
int fxstat(int version, int file, struct stat *out) __asm__("grt_fxstat");
int lxstat(int version, const char *path, struct stat *out) __asm__("grt_lxstat");
__asm__(".symver grt_xstat,__xstat@GLIBC_2.2.5");
__asm__(".symver grt_fxstat,__fxstat@GLIBC_2.2.5");
__asm__(".symver grt_lxstat,__lxstat@GLIBC_2.2.5");

int stat(const char *path, struct stat *out)
{
    return xstat(1, path, out);
}
int stat64(const char *path, struct stat *out)
{
    return xstat(1, path, out);
}
int fstat(int file, struct stat *out)
{
    return fxstat(1, file, out);
}
int fstat64(int file, struct stat *out)
{
    return fxstat(1, file, out);
}
int lstat(const char *path, struct stat *out)
{
    return lxstat(1, path, out);
}
int lstat64(const char *path, struct stat *out)
{
    return lxstat(1, path, out);
}

/* False also where there is one thread: counters are then changed atomically for nothing. */
char __libc_single_threaded = 0;
}

[[noreturn]] void throw_bad_length() __asm__("_ZSt28__throw_bad_array_new_lengthv");
void throw_bad_length()
{
    throw std::bad_array_new_length();
}

void string_stream(void *self) __asm__("_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void string_stream(void *self)
{
    new (self) std::stringstream(std::ios_base::in | std::ios_base::out);
}
void output_string_stream(void *self) __asm__(
    "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void output_string_stream(void *self)
{
    new (self) std::ostringstream(std::ios_base::out);
}

/* std::exception_ptr is one counted pointer. Copying and destroying one were functions of the library;
 * counting alone was not yet. */
void copy_exception(void **self, void *const *from) __asm__("_ZNSt15__exception_ptr13exception_ptrC1ERKS0_");
void destroy_exception(void **self) __asm__("_ZNSt15__exception_ptr13exception_ptrD1Ev");
void count_exception(void **self) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void count_exception(void **self)
{
    void *counted = nullptr;
    copy_exception(&counted, self);
}
void release_exception(void **self) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
void release_exception(void **self)
{
    void *released = *self;
    *self = nullptr;
    destroy_exception(&released);
}
