#!/bin/bash
# Builds the libFuzzer targets with clang in build-fuzz/ and runs each for a while. usage: tests/fuzz/run.sh [SECONDS]
# Seeds need the data and graphc of build/. What crashes, hangs (10 s) or takes too much memory is kept in build-fuzz/.
# The last line is "N passed, N failed, N skipped"; exit status 77 without clang's libFuzzer.
set -u
cd "$(dirname "$0")/../.." || exit 1
. scripts/ui.sh
seconds=${1:-20}
ui_logs=build-fuzz/logs
mkdir -p build-fuzz/logs
passed=0
failed=0

has_libfuzzer()
{
    printf 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n > 9 ? 0 : 0; }\n' \
        >build-fuzz/can.c
    clang -fsanitize=fuzzer,address build-fuzz/can.c -o build-fuzz/can >/dev/null 2>&1 &&
        build-fuzz/can -runs=1 >/dev/null 2>&1
}
configure_build()
{
    [ -x configure ] || ./autogen.sh || return 1
    cd build-fuzz || return 1
    [ -x config.status ] ||
        ../configure CC=clang CFLAGS="-O1 -g -Wno-unknown-warning-option -Wno-unknown-pragmas -Wno-pass-failed" --enable-fuzzers --enable-sanitizers=address,undefined,fuzzer-no-link
}
build_targets()
{
    make -C build-fuzz generated && make -C build-fuzz -j"$(nproc)" tests/fuzz/fuzz_import tests/fuzz/fuzz_plan
}
make_seeds() { tests/fuzz/seeds.sh build build-fuzz/seeds; }

if ! has_libfuzzer; then
    echo "skipped: clang with libFuzzer is not installed"
    exit 77
fi
if ! step "configuring build-fuzz/" configure_build || ! step "building the fuzz targets" build_targets ||
    ! step "making seeds" make_seeds; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
# Refused allocations are part of the test: a claim of 2^40 elements must not be believed. Leaks are found as well.
export ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1"
for target in import plan; do
    mkdir -p "build-fuzz/corpus/$target"
    if step "fuzz_$target for $seconds s" "build-fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=65536 -artifact_prefix="build-fuzz/$target-" \
        "build-fuzz/corpus/$target" "build-fuzz/seeds/$target"; then
        passed=$((passed + 1))
        grep -E '^(Done|#.* DONE)' "build-fuzz/logs/step-$ui_step.log" | tail -n 1
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
