#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libFuzzer targets with clang in build-fuzz/ and runs each of them.
#
#   tests/fuzz/run.sh            60,000 executions of each target (FUZZ_RUNS: how many) from the random seed 1 (FUZZ_SEED: another one).
#                                The same tree, compiler and kind of processor make the same executions at every call: a change that
#                                finds something has made it or moved it, and the line of a failure says how to see it again
#   tests/fuzz/run.sh SECONDS    a campaign: each target for so long, from a random seed that is drawn and printed (FUZZ_SEED: this one),
#                                with what earlier campaigns found worth keeping in build-fuzz/corpus/. For many cores: campaign.sh
#   tests/fuzz/run.sh 0          builds them, with tests/forge/forge, and makes the seeds
#
# FUZZ_TARGETS: which of "import plan run". Seeds need the data and graphc of build/. What crashes, hangs (20 s) or takes too much memory
# is kept in build-fuzz/ as TARGET-KIND-HASH; build-fuzz/tests/fuzz/fuzz_TARGET FILE tries one again.
# The last line is "N passed, N failed, N skipped"; exit status 77 without clang's libFuzzer.
set -u
cd "$(dirname "$0")/../.." || exit 1
. scripts/ui.sh
seconds=${1:-}
runs=${FUZZ_RUNS:-60000}
if [ -n "$seconds" ]; then
    seed=${FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
    amount=(-max_total_time="$seconds")
    title="for $seconds s from random seed $seed"
else
    seed=${FUZZ_SEED:-1}
    # What libFuzzer does by the clock would make executions and addresses differ.
    amount=(-runs="$runs" -reload=0 -purge_allocator_interval=-1)
    title="$runs times from random seed $seed"
fi
same=() # as a command's first words: the same addresses, by which tables are hashed, at every call
[ -n "$seconds" ] || { setarch -R true 2>/dev/null && same=(setarch -R); }
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
# Those that an earlier tree has made would stay.
make_seeds() { rm -rf build-fuzz/seeds && tests/fuzz/seeds.sh build build-fuzz/seeds; }

# Writes the list of what target $1 reads to begin with: in the order of names, as file systems have each their own.
list_seeds()
{
    local kind=$1
    [ "$kind" = run ] && kind=import # models all the same
    printf '%s\n' "build-fuzz/seeds/$kind"/* "tests/fuzz/regressions/$1"/* | LC_ALL=C sort | paste -sd, | tr -d '\n' >"build-fuzz/seeds/$1.list"
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
for target in ${FUZZ_TARGETS:-import plan run}; do
    [ "$seconds" = 0 ] && break
    corpus=build-fuzz/corpus/$target
    [ -n "$seconds" ] || corpus=build-fuzz/same/$target
    [ -n "$seconds" ] || rm -rf "$corpus"
    mkdir -p "$corpus"
    list_seeds "$target"
    # Memory that the sanitizer refuses is no failure of the library's, hence no limit of one allocation.
    if step "fuzz_$target $title" "${same[@]}" "build-fuzz/tests/fuzz/fuzz_$target" -seed="$seed" "${amount[@]}" -entropic=0 -timeout=20 \
        -rss_limit_mb=2048 -malloc_limit_mb=1000000 -max_len=32768 -artifact_prefix="build-fuzz/$target-" \
        -seed_inputs="@build-fuzz/seeds/$target.list" "$corpus"; then
        passed=$((passed + 1))
        grep -E '^(Done|#.* DONE)' "build-fuzz/logs/step-$ui_step.log" | tail -n 1
    else
        failed=$((failed + 1))
        say "    again: FUZZ_TARGETS=$target FUZZ_SEED=$seed${FUZZ_RUNS:+ FUZZ_RUNS=$FUZZ_RUNS} tests/fuzz/run.sh $seconds"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
