#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libFuzzer targets with clang in build-fuzz/ and runs each for a while. usage: tests/fuzz/run.sh [SECONDS]
# Without SECONDS each target makes the same 60,000 executions at every call, as far as that can be: who changed nothing sees nothing new. To
# look for what is new, give SECONDS of each target, or see campaign.sh; 0 builds them, with tests/forge/forge, and makes the seeds.
# Seeds need the data and graphc of build/. What crashes, hangs (20 s) or takes too much memory is kept in build-fuzz/.
# The last line is "N passed, N failed, N skipped"; exit status 77 without clang's libFuzzer.
set -u
cd "$(dirname "$0")/../.." || exit 1
. scripts/ui.sh
seconds=${1:-}
amount=(-max_total_time="$seconds")
same=() # as a command's first words: the same addresses, by which tables are hashed, at every call
if [ -z "$seconds" ]; then
    amount=(-seed=1 -runs=60000)
    setarch -R true 2>/dev/null && same=(setarch -R)
fi
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
    # Mutations know the formats, so that comparisons need not be traced for constants.
    [ -x config.status ] ||
        ../configure CC="${FUZZ_CC:-clang}" --without-cuda --enable-fuzzers --enable-sanitizers=address,undefined,fuzzer-no-link \
            CFLAGS="-O1 -gline-tables-only -fno-sanitize-coverage=trace-cmp -Wno-unknown-warning-option"
}
build_targets()
{
    make -C build-fuzz generated &&
        make -C build-fuzz -j"$(nproc)" tests/fuzz/fuzz_import tests/fuzz/fuzz_plan tests/fuzz/fuzz_run tests/forge/forge
}
make_seeds() { tests/fuzz/seeds.sh build build-fuzz/seeds; }

# Of what target $1 reads, to begin with.
seeds_of()
{
    local kind=$1
    [ "$kind" = run ] && kind=import # models all the same
    ls -d "build-fuzz/seeds/$kind" "tests/fuzz/regressions/$1" 2>/dev/null
}

if ! has_libfuzzer; then
    echo "skipped: clang with libFuzzer is not installed"
    exit 77
fi
if ! step "configuring build-fuzz/" configure_build || ! step "building the fuzz targets" build_targets ||
    ! step "making seeds" make_seeds; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export GRAPHRT_FUZZ_POOL=${GRAPHRT_TEST_DATA:-build/data}/node OMP_NUM_THREADS=1
for target in import plan run; do
    [ "$seconds" = 0 ] && break
    corpus=build-fuzz/corpus/$target
    [ -n "$seconds" ] || corpus=build-fuzz/same/$target
    [ -n "$seconds" ] || rm -rf "$corpus"
    mkdir -p "$corpus"
    # Memory that the sanitizer refuses is no failure of the library's, hence no limit of one allocation.
    # shellcheck disable=SC2046 # a list of directories
    if step "fuzz_$target${seconds:+ for $seconds s}" "${same[@]}" "build-fuzz/tests/fuzz/fuzz_$target" "${amount[@]}" -entropic=0 -timeout=20 \
        -rss_limit_mb=2048 -malloc_limit_mb=1000000 -max_len=32768 -artifact_prefix="build-fuzz/$target-" \
        "$corpus" $(seeds_of "$target"); then
        passed=$((passed + 1))
        grep -E '^(Done|#.* DONE)' "build-fuzz/logs/step-$ui_step.log" | tail -n 1
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
