#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds with sanitizers in a directory of its own and runs tests there. usage: scripts/sanitize.sh address|thread
#   address   AddressSanitizer, leak check and UBSan (build-asan/): make check and every 8th conformance case
#   thread    ThreadSanitizer (build-tsan/): one session shared by four threads; sessions on eight devices at once; a pool under
#             requests from eight threads; uploads; the cache of algorithms; what services are made of
# The last line is "N passed, N failed, N skipped"; exit status 77 if the compiler cannot do it here.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/ui.sh
. scripts/totals.sh
top=$PWD

case ${1:-} in
address) list=address,undefined build=build-asan ;;
thread) list=thread build=build-tsan ;;
*) die "usage: scripts/sanitize.sh address|thread" ;;
esac
ui_logs=$build/logs
mkdir -p "$build/logs"

# A sanitizer may be missing, or refuse the address space layout of this kernel.
works()
{
    local program=$build/can-run
    printf 'int main(void) { return 0; }\n' >"$program.c"
    ${CC:-gcc} "-fsanitize=$list" "$program.c" -o "$program" >/dev/null 2>&1 && "$program" >/dev/null 2>&1
}
configure_build()
{
    [ -x configure ] || ./autogen.sh || return 1
    cd "$build" || return 1
    # --enable-debug is without optimisation: with these checks, -O1 takes two to three times as long to compile.
    [ -x config.status ] || ../configure --without-cuda --enable-sanitizers="$list" --enable-debug CFLAGS=-g || return 1
}

# ThreadSanitizer sees neither libgomp's nor oneDNN's own synchronisation, so an operator gets one thread, and races inside those
# libraries are left to them.
run_threads()
{
    printf 'called_from_lib:libgomp.so\ncalled_from_lib:libdnnl.so\n' >"$build/tsan.supp"
    OMP_NUM_THREADS=1 TSAN_OPTIONS="suppressions=$PWD/$build/tsan.supp halt_on_error=1${TSAN_MORE:+ $TSAN_MORE}" "$@"
}
# Processes that end beside their threads leave them.
run_leaving_threads() { TSAN_MORE=report_thread_leaks=0 run_threads "$@"; }
on_devices()
{
    local devices
    for devices in null:all mirror:all cpu; do
        GRAPHRT_ALGO_CACHE=$build/algos.db run_threads "$build/graphrun" models/digits/digits.onnx --device "$devices" \
            --repeat 40 --threads 1 || return 1
    done
}

if ! works; then
    echo "skipped: programs built with -fsanitize=$list do not run here"
    exit 77
fi
step "configuring $build/" configure_build || exit 1
if [ "$list" = thread ]; then
    export GRAPHRUN=$top/$build/graphrun # what processes of pools run
    step "generating sources" make -C "$build" generated || exit 1
    step "building" make -C "$build" -j"$(nproc)" examples/threads graphrun libgraphrt-mirror.so tests/soak/soak || exit 1
    step "building the unit tests" make -C "$build" -j"$(nproc)" tests/unit/unit || exit 1
    step "four threads on one session" run_threads "$build/examples/threads" models/digits/digits.onnx 4 20 || exit 1
    step "sessions on eight devices" on_devices || exit 1
    step "a pool under 4000 requests" run_threads "$build/tests/soak/soak" --requests 4000 models/digits/digits.onnx || exit 1
    step "uploads, sessions, pools, cache" run_threads "$build/tests/unit/unit" test_upload test_sessions test_pool test_schedule test_linger test_service_stop test_service_queue test_service_histograms test_service_lanes test_service_batches test_service_rows test_prepared test_service_misuse test_service_disturbed test_pool_state test_background test_spans test_processes test_algo_cache test_algo_cache_files test_algo_cache_writers || exit 1
    step "stops, state, weights, memory, lost devices" run_threads "$build/tests/unit/unit" test_stop test_state test_weights_api test_memory_api test_binding test_thread_share test_lost || exit 1
    step "processes that end with all open" run_leaving_threads "$build/tests/unit/unit" test_exit_guard || exit 1
    echo "6 passed, 0 failed, 0 skipped"
    exit 0
fi
# oneDNN keeps a primitive cache for the life of the process; what it holds is reachable, so leaks stay reportable.
# intercept_tls_get_addr: GCC 12's LeakSanitizer reads thread-local variables of libraries that are opened while threads run, as oneDNN's own
# are, at addresses that it guesses, and may crash. Without that they are not searched for pointers.
export ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}"
step "building" make -C "$build" -j"$(nproc)" || exit 1
totals_run "$build/logs/check.log" scripts/make-check.sh "$build"
GRAPHRT_TEST_DATA=$top/build/data totals_run "$build/logs/conformance.log" tests/conformance/run.sh "$build" --every 8
totals_print
