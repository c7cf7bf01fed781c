#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 64-bit ARM, and runs conformance cases under qemu's user mode. Not part of any default run: it compiles
# everything anew, and the emulator is slow.
# usage: scripts/arm64.sh [--every N] [DIRECTORY]    (default: build-arm64; N: each N-th conformance case only)
#
# Wants Debian's g++-aarch64-linux-gnu, qemu-user-static and, as root, mmdebstrap, which unpacks the libraries of that architecture into
# DIRECTORY/root: nothing is installed. What is missing is said; then it ends with 77. The last line is the totals.
set -u
every=1
[ "${1:-}" = --every ] && every=$2 && shift 2
top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build-arm64}
. "$top/scripts/totals.sh"

skip() { echo "skipped: arm64: $1" && exit 77; }
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static mmdebstrap; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
mkdir -p "$build/logs" && build=$(cd "$build" && pwd) || exit 1
root=$build/root

# The libraries, without what their installation would run.
unpack_root()
{
    [ -e "$root/usr/include/aarch64-linux-gnu" ] && return
    [ "$(id -u)" = 0 ] || skip "mmdebstrap wants root"
    rm -rf "$root"
    mmdebstrap --architectures=arm64 --variant=extract \
        --include=libc6-dev,libstdc++-12-dev,libdnnl-dev,libprotobuf-c-dev,libxxhash-dev,libsodium-dev,libsqlite3-dev,libjansson-dev,uthash-dev,check,libgomp1 \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"
}
configure_build()
{
    [ -e "$build/config.status" ] && return
    (cd "$build" && PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root "$top/configure" \
        --host=aarch64-linux-gnu CC="${CC:-aarch64-linux-gnu-gcc} --sysroot=$root" CXX="${CXX:-aarch64-linux-gnu-g++} --sysroot=$root" \
        --without-cuda --without-images)
}
compile() { make -C "$build" -j"$(nproc)" libgraphrt.la graphrun libgraphrt-mirror.so; }
# The build as the suite knows it, whose program runs in the emulator.
emulate()
{
    mkdir -p "$build/emulated" && cat >"$build/emulated/graphrun" <<END
#!/bin/sh
exec qemu-aarch64-static -L "$root" -E LD_LIBRARY_PATH="$build/.libs" "$build/.libs/graphrun" "\$@"
END
    chmod +x "$build/emulated/graphrun"
}
step()
{
    echo "== $1"
    "${@:2}" >"$build/logs/$2.log" 2>&1 || { tail -n 20 "$build/logs/$2.log" && exit 1; }
}

[ -x "$top/configure" ] || (cd "$top" && ./autogen.sh) || exit 1
step "libraries of arm64" unpack_root
step "configuring" configure_build
step "compiling" compile
emulate
export GRAPHRT_BACKEND_PATH=$build
totals_run "$build/logs/conformance.log" env GRAPHRT_TEST_DATA="$build/data" "$top/tests/conformance/run.sh" "$build/emulated" --every "$every" --timeout 1800
totals_print
