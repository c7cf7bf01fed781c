# SPDX-License-Identifier: Apache-2.0
"""Wheels for systems that are older than the one that they are made on: manylinux_2_28.

glibc and libstdc++ never drop a version of a function. A newer version is most often the same function at a new place (dlopen was in libdl
until 2.34), and a linker always takes the newest. Here references above manylinux_2_28's versions are set back to the version that linking
on such a system had taken; the few functions that it lacks are in older_glibc.cc, a library that is added to the wheel. What fits neither
is an error: nothing is left to fail on a user's machine.
"""

import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from auditwheel.wheeltools import InWheelCtx
from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
# What PEP 600 and auditwheel allow for manylinux_2_28 on x86-64.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}
ADDED = "libgraphrt-older-glibc.so"
# Where functions were before glibc became one library; these names still exist on every system.
FORMER_HOMES = {"dl": "libdl.so.2", "pthread_": "libpthread.so.0", "sem_": "libpthread.so.0", "shm_": "librt.so.1"}


def _number(version):
    """("GLIBC", (2, 34)) of "GLIBC_2.34", or None if it is no such version."""
    found = re.fullmatch(r"([A-Z]+)_([0-9.]+)", version)
    return (found[1], tuple(map(int, found[2].split(".")))) if found and found[1] in NEWEST else None


def _is_too_new(version):
    number = _number(version)
    return number is not None and number[1] > NEWEST[number[0]]


def _text(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


class TooNew(Exception):
    """A reference that nothing on manylinux_2_28 can take."""


@dataclass
class Version:
    """One version of a library that an ELF file wants: an entry of .gnu.version_r at `place`."""
    library: str
    name: str
    index: int
    place: int


class Elf:
    """The references of one ELF file, for 64-bit little-endian, and how to change them where they stand."""

    def __init__(self, path):
        self.path, self.data = path, bytearray(path.read_bytes())
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            sections = {name: elf.get_section_by_name(name) for name in (".dynsym", ".dynstr", ".gnu.version", ".gnu.version_r", ".init_array")}
            self.at = {name: section["sh_offset"] for name, section in sections.items() if section}
            self.constructors = sections[".init_array"]["sh_size"] // 8 if sections[".init_array"] else 0
            self.is_program = any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments())
            self.symbols = {i: symbol.name for i, symbol in enumerate(sections[".dynsym"].iter_symbols())} if sections[".dynsym"] else {}
            self.strings = sections[".dynstr"].data() if sections[".dynstr"] else b""
        self.versions = list(self._versions()) if ".gnu.version_r" in self.at else []

    def _versions(self):
        place = self.at[".gnu.version_r"]
        while True:
            _, count, library, first, following = struct.unpack_from("<HHIII", self.data, place)
            entry = place + first
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, entry)
                yield Version(_text(self.strings, library), _text(self.strings, name), index, entry)
                entry += step
            if not following:
                return
            place += following

    def users(self, version):
        """Numbers of the symbols that are wanted in this version."""
        return [i for i in self.symbols if struct.unpack_from("<H", self.data, self.at[".gnu.version"] + 2 * i)[0] == version.index]

    def set_index(self, symbol, index):
        struct.pack_into("<H", self.data, self.at[".gnu.version"] + 2 * symbol, index)

    def has_string(self, text):
        return b"\0" + text.encode() + b"\0" in self.strings

    def rename(self, version, name):
        digest = 0
        for byte in name.encode():
            digest = (digest << 4) + byte
            digest = (digest ^ (digest >> 24 & 0xF0)) & 0x0FFFFFFF
        struct.pack_into("<I", self.data, version.place, digest)
        struct.pack_into("<I", self.data, version.place + 8, self.strings.index(b"\0" + name.encode() + b"\0") + 1)
        version.name = name

    def save(self):
        self.path.write_bytes(self.data)


class Provided:
    """The versions of functions in the libraries of this system: all that there ever were."""

    def __init__(self):
        self._read = {}

    def of(self, library):
        """{function: [its versions, oldest first]}, and the oldest version of the library."""
        if library not in self._read:
            path = subprocess.run(["cc", f"-print-file-name={library}"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            with open(path, "rb") as stream:
                elf, functions, names = ELFFile(stream), {}, {}
                for definition, aux in elf.get_section_by_name(".gnu.version_d").iter_versions():
                    names[definition["vd_ndx"]] = next(aux).name
                versions = elf.get_section_by_name(".gnu.version")
                for i, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
                    index = versions.get_symbol(i)["ndx"]  # bit 15: hidden, as all but a function's newest version
                    if symbol["st_shndx"] != "SHN_UNDEF" and isinstance(index, int):
                        functions.setdefault(symbol.name, []).append(names[index & 0x7FFF])
            for found in functions.values():
                found.sort(key=lambda name: _number(name) or ("", ()))
            self._read[library] = functions, names[2]
        return self._read[library]


def _former_home(function, path):
    if function == "__libc_start_main":
        return None
    for start, library in FORMER_HOMES.items():
        if function.startswith(start):
            return library
    raise TooNew(f"{path.name} wants {function}, which became part of libc.so.6 lately: add where it was to FORMER_HOMES")


def _set_back_version(elf, version, provided, added):
    """Set the users of one version back. Returns the libraries that the file needs besides."""
    functions, oldest = provided.of(version.library)
    needed, renamed = set(), False
    for symbol in elf.users(version):
        function = elf.symbols[symbol]
        known = [name for name in functions.get(function, []) if not _is_too_new(name)]
        if not known:
            if function not in added:
                raise TooNew(f"{elf.path.name} wants {function}@{version.name}, which manylinux_2_28 lacks: "
                                   "add it to older_glibc.cc and older_glibc.map")
            needed.add(ADDED)
            elf.set_index(symbol, 1)  # no version: whoever has it
            continue
        if function == "__libc_start_main" and elf.constructors > 1:
            raise TooNew(f"{elf.path.name} has constructors, which glibc before 2.34 does not run for a program that is linked here")
        if version.library == "libc.so.6" and _number(version.name)[1] in ((2, 32), (2, 34)):
            needed.add(_former_home(function, elf.path))
        target = known[-1]
        same = [other for other in elf.versions if other.library == version.library and other.name == target]
        if same:
            elf.set_index(symbol, same[0].index)
        elif not renamed and elf.has_string(target):
            elf.rename(version, target)
            renamed = True
        elif oldest not in known or target == oldest:
            elf.set_index(symbol, 1)  # bound to the system's default, or to the oldest
        else:
            raise TooNew(f"{elf.path.name} wants {function}@{version.name} and has no room for {target}")
    if _is_too_new(version.name):  # nobody's any more; as an entry it stays, under a name that is there
        elf.rename(version, next(name for name in [oldest] + [other.name for other in elf.versions if other.library == version.library]
                                 if elf.has_string(name) and not _is_too_new(name)))
    return needed - {None}


def set_back(path, provided, added):
    """Set one ELF file back to manylinux_2_28. Returns whether it needs the added library."""
    def too_new(elf):
        return [version for version in elf.versions if _is_too_new(version.name)]

    trial = Elf(path)
    needed = set().union(*(_set_back_version(trial, version, provided, added) for version in too_new(trial)))
    if needed:  # moves sections, so that it comes first
        subprocess.run(["patchelf", *(word for library in sorted(needed) for word in ("--add-needed", library)), path], check=True)
    elf = Elf(path)
    for version in too_new(elf):
        _set_back_version(elf, version, provided, added)
    elf.save()
    return ADDED in needed


def _add_to_run_path(path, directory):
    def patchelf(*words):
        return subprocess.run(["patchelf", *words, path], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    paths = [one for one in patchelf("--print-rpath").split(":") if one]
    if directory not in paths:
        patchelf("--force-rpath", "--set-rpath", ":".join(paths + [directory]))


def compile_added(path):
    """Compile the library that is added. Returns the names that it has."""
    subprocess.run(["c++", "-shared", "-fPIC", "-O2", "-s", "-Wall", "-Wextra", "-Werror", f"-Wl,--version-script={HERE / 'older_glibc.map'}",
                    f"-Wl,-soname,{ADDED}", "-o", path, HERE / "older_glibc.cc"], check=True)
    return set(re.findall(r"^        (\w+);$", (HERE / "older_glibc.map").read_text(), re.MULTILINE))


def set_back_wheel(wheel, out):
    """Write a wheel whose libraries run on manylinux_2_28 to `out`; its tag is left to auditwheel."""
    with InWheelCtx(wheel, out) as context:
        root, provided = Path(context.path), Provided()
        libraries = root / (wheel.name.split("-")[0] + ".libs")
        libraries.mkdir(exist_ok=True)
        added = libraries / ADDED
        names = compile_added(added)
        used = False
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF" and set_back(path, provided, names):
                up = "../" * len(path.parent.relative_to(root).parts)
                _add_to_run_path(path, "$ORIGIN" if path.parent == libraries else f"$ORIGIN/{up}{libraries.name}")
                used = True
        if not used:
            added.unlink()
            if not any(libraries.iterdir()):
                libraries.rmdir()
