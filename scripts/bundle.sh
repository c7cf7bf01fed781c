#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make a directory that runs on another machine of the same architecture without development packages:
# the tools, the library with its header, the backends' modules and the non-system libraries they need with their licences, and
# the tests for devices. Programs: PKG_CONFIG_PATH=OUT_DIR/lib/pkgconfig, and OUT_DIR/lib in LD_LIBRARY_PATH.
# usage: bundle.sh BUILD_DIR OUT_DIR
set -eu
build=$1 out=$2
top=$(cd "$(dirname "$0")/.." && pwd)
rm -rf "$out"
mkdir -p "$out/bin" "$out/libexec" "$out/lib/graphrt"
# The later ones serve benchmarks and tests on such machines; floor is there with CUDA only, differential, device and interface after make check.
for path in graphc graphrun models/generate/grt-models bench/init_scaling/ready bench/init_scaling/floor tests/differential/differential tests/device/device tests/interface/interface; do
    tool=$(basename "$path")
    [ -f "$build/$path" ] || continue
    cp "$build/$(dirname "$path")/.libs/$tool" "$out/libexec/$tool" 2>/dev/null || cp "$build/$path" "$out/libexec/$tool"
    strip "$out/libexec/$tool"
    cat >"$out/bin/$tool" <<'WRAPPER'
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export GRAPHRT_BACKEND_PATH="${GRAPHRT_BACKEND_PATH:-$here/lib/graphrt}"
exec "$here/libexec/$(basename "$0")" "$@"
WRAPPER
    chmod +x "$out/bin/$tool"
done
cp -L "$build/.libs/libgraphrt.so.1" "$out/lib/"
for module in "$build"/libgraphrt-*.so; do
    case $module in *-mirror.so) continue ;; esac # of the tests here
    [ -f "$module" ] || continue
    cp "$module" "$out/lib/graphrt/"
    case $module in *-cuda.so) ;; *) continue ;; esac
    toolkit=$(sed -n 's/^CUDA_DIR = //p' "$build/Makefile") # parts of its runtime are linked in
    if [ -f "$toolkit/EULA.txt" ]; then
        mkdir -p "$out/share/doc/graphrt/licences" && cp "$toolkit/EULA.txt" "$out/share/doc/graphrt/licences/cuda-toolkit.txt"
    else
        echo "bundle.sh: $toolkit/EULA.txt is not there: add the CUDA toolkit's licence before you pass the bundle on" >&2
    fi
done
# Descriptions of GPUs, where graphc looks for them.
mkdir -p "$out/share/graphrt"
cp -R "$build/share/graphrt/devices" "$out/share/graphrt/"
# Copies all libraries but those that every Linux has.
ldd "$build/.libs/graphrun" "$build/models/generate/grt-models" "$build/.libs/libgraphrt.so.1" "$build/libgraphrt-onednn.so" |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*|libgraphrt)\.so' |
    while read -r library; do
        cp -L "$library" "$out/lib/"
        "$top/scripts/licence-of.sh" "$library" "$out/share/doc/graphrt/licences"
    done
cp "$top/LICENSE" "$top/NOTICE" "$out/share/doc/graphrt/"
# For programs.
ln -s libgraphrt.so.1 "$out/lib/libgraphrt.so"
mkdir -p "$out/include/graphrt" "$out/lib/pkgconfig"
cp "$top"/include/graphrt/*.h "$out/include/graphrt/"
# shellcheck disable=SC2016 # pkg-config's own variable
sed -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|^libdir=.*|libdir=${prefix}/lib|' -e 's|^includedir=.*|includedir=${prefix}/include|' \
    "$build/graphrt.pc" >"$out/lib/pkgconfig/graphrt.pc"
cp "$top/include/graphrt/graphrt.hpp" "$out/include/graphrt/"
strip --strip-unneeded "$out"/lib/*.so* "$out"/lib/graphrt/*.so 2>/dev/null || true
# The tests that need a device: tests/conformance/device.sh OUT_DIR cuda
mkdir -p "$out/tests/data" "$out/tests/conformance" "$out/scripts"
cp "$top"/tests/conformance/*.sh "$top"/tests/conformance/*.txt "$out/tests/conformance/"
cp -R "$top"/tests/data/*.tar.xz "$top/tests/data/cases" "$top/models/digits/digits.onnx" "$out/tests/data/"
cp "$top/scripts/totals.sh" "$out/scripts/"
du -sh "$out"
