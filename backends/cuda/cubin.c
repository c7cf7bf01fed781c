/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/cubin.h"

#include <linux/elf.h>
#include <stdint.h>
#include <string.h>

enum { CUDA = 190 }; /* EM_CUDA */

static bool cuda_cubin_is_inside(uint64_t offset, uint64_t length, size_t size)
{
    return offset <= size && length <= size - offset;
}

static bool sections_are_inside(const char *code, const Elf64_Ehdr *elf, size_t size)
{
    for (uint64_t i = 0; i < elf->e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, code + elf->e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && !cuda_cubin_is_inside(section.sh_offset, section.sh_size, size))
            return false;
        /* names are read up to their 0 */
        if (section.sh_type == SHT_STRTAB && section.sh_size &&
            code[section.sh_offset + section.sh_size - 1] != '\0')
            return false;
    }
    return true;
}

static bool segments_are_inside(const char *code, const Elf64_Ehdr *elf, size_t size)
{
    for (uint64_t i = 0; i < elf->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, code + elf->e_phoff + i * sizeof segment, sizeof segment);
        if (!cuda_cubin_is_inside(segment.p_offset, segment.p_filesz, size))
            return false;
    }
    return true;
}

bool cuda_cubin_is_whole(const void *code, size_t size)
{
    Elf64_Ehdr elf;
    if (size < sizeof elf)
        return false;
    memcpy(&elf, code, sizeof elf);
    return !memcmp(elf.e_ident, ELFMAG, SELFMAG) && elf.e_ident[EI_CLASS] == ELFCLASS64 &&
           elf.e_ident[EI_DATA] == ELFDATA2LSB && elf.e_machine == CUDA && elf.e_shnum > 0 &&
           elf.e_shentsize == sizeof(Elf64_Shdr) && elf.e_shstrndx < elf.e_shnum &&
           cuda_cubin_is_inside(elf.e_shoff, elf.e_shnum * sizeof(Elf64_Shdr), size) &&
           (elf.e_phnum == 0 || elf.e_phentsize == sizeof(Elf64_Phdr)) &&
           cuda_cubin_is_inside(elf.e_phoff, elf.e_phnum * sizeof(Elf64_Phdr), size) &&
           sections_are_inside(code, &elf, size) && segments_are_inside(code, &elf, size);
}
