#!/bin/bash
# Runs every conformance case there is with `graphrun check`: official node tests, old suites, light models, exported models.
# usage: run.sh BUILD-DIR [--every N] [--jobs N]    (--every N: each N-th case only, for slow builds)
#
# expected_failures.txt names the cases that are known to fail, each with the reason. They must fail: one that passes counts as
# a failure, so that the list cannot go stale. The last line is "N passed, N failed, N skipped"; expected failures count as skipped.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD-DIR [--every N] [--jobs N]}" && pwd) || exit 1
shift
every=1
jobs=$(nproc)
while (($# > 1)); do
    case $1 in
    --every) every=$2 ;;
    --jobs) jobs=$2 ;;
    *) break ;;
    esac
    shift 2
done
(($# == 0)) || { echo "run.sh: unknown argument $1" >&2 && exit 2; }

data=${GRAPHRT_TEST_DATA:-$build/data}
work=$build/conformance
mkdir -p "$work"
passed=0
failed=0
skipped=0

say() { printf '%s\n' "$*"; }

# Cases of light models are made once: the archive has model and output only.
make_light_cases()
{
    local model name dir
    for model in "$data"/data/light/*.onnx; do
        [ -e "$model" ] || continue
        name=$(basename "$model" .onnx)
        dir=$work/light/$name
        [ -e "$dir/test_data_set_0/output_0.pb" ] && continue
        mkdir -p "$dir/test_data_set_0"
        ln -sf "$model" "$dir/model.onnx"
        "$build/tests/conformance/light_case" "$model" "$dir/test_data_set_0" || failed=$((failed + 1))
        cp -f "${model%.onnx}_output_0.pb" "$dir/test_data_set_0/output_0.pb"
    done
}

# All cases by the names that expected_failures.txt uses, one a line.
list_cases()
{
    (cd "$data" && find node data/simple data/pytorch-converted data/pytorch-operator given -name model.onnx 2>/dev/null)
    (cd "$work" && find light -name model.onnx 2>/dev/null)
}

# Run the cases in file $2, named relative to directory $1, with the rest of the arguments. Output goes to $work/out.
check_cases()
{
    local root=$1 list=$2
    shift 2
    : >"$work/out"
    [ -s "$list" ] || return 0
    (cd "$root" && xargs -a "$list" "$build/graphrun" check --jobs "$jobs" "$@") >"$work/out" 2>&1
    if ! grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' <(tail -n 1 "$work/out"); then
        say "graphrun check stopped without its last line; it ended with:"
        tail -n 5 "$work/out"
        return 1
    fi
}

count() { awk -v word="$1" '{ for (i = 2; i <= NF; i++) if ($i ~ "^" word) n += $(i - 1) } END { print n + 0 }' <(tail -n 1 "$work/out"); }

# Cases that must pass.
must_pass()
{
    local title=$1
    shift
    if ! check_cases "$@"; then
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + $(count passed)))
    failed=$((failed + $(count failed)))
    skipped=$((skipped + $(count skipped)))
    say "$title: $(tail -n 1 "$work/out" | grep . || echo none)"
    head -n -1 "$work/out" | grep -v '^ *$' | head -n 60
}

# Cases that must fail: one process each, so that a report names those that did not.
must_fail()
{
    local root=$1 list=$2 name
    : >"$work/unexpected"
    export build root
    # shellcheck disable=SC2016 # expanded by the inner shell
    (cd "$root" && xargs -a "$list" -P "$jobs" -n 1 sh -c '
        timeout 60 "$build/graphrun" check "$1" >/dev/null 2>&1
        status=$?
        case $status in
        0) echo "$1 passes: take it off the list of expected failures" ;;
        1 | 2) ;;
        *) echo "$1 is expected to fail with a message, but graphrun ended with status $status" ;;
        esac' sh) >"$work/unexpected"
    while read -r name; do
        say "$name"
        failed=$((failed + 1))
    done <"$work/unexpected"
    skipped=$((skipped + $(wc -l <"$list") - $(wc -l <"$work/unexpected")))
}

"$here/unpack.sh" "$data" || exit 1
[ -x "$build/tests/conformance/light_case" ] && make_light_cases
list_cases | sed 's,/model.onnx$,,' | sort | awk -v every="$every" 'NR % every == 0' >"$work/cases"

# Expected failures: names without the reasons, those that are among the cases, and those that name nothing.
grep -vE '^[[:space:]]*(#|$)' "$here/expected_failures.txt" | sort >"$work/expected"
awk 'NF < 2 { print $1 ": no reason in expected_failures.txt" }' "$work/expected" | tee "$work/unreasoned"
failed=$((failed + $(wc -l <"$work/unreasoned")))
awk '{ print $1 }' "$work/expected" | sort -u >"$work/expected.names"
comm -12 "$work/cases" "$work/expected.names" >"$work/expected.here"
comm -23 "$work/cases" "$work/expected.names" >"$work/wanted"
if ((every == 1)); then
    while read -r name; do
        # A suite whose archive is absent is not a stale name.
        grep -q "^${name%/*}/" "$work/cases" || continue
        say "$name in expected_failures.txt is not a case"
        failed=$((failed + 1))
    done < <(comm -13 "$work/cases" "$work/expected.names")
fi

grep -vE '^light/' "$work/wanted" >"$work/wanted.data"
grep -E '^light/' "$work/wanted" | grep -v densenet >"$work/wanted.light"
grep -E '^light/.*densenet' "$work/wanted" >"$work/wanted.densenet"
must_pass "node tests, old suites, exported models" "$data" "$work/wanted.data"
must_pass "light models" "$work" "$work/wanted.light"
must_pass "light models, rtol 2e-3 as their data.json says" "$work" "$work/wanted.densenet" --rtol 2e-3
grep -vE '^light/' "$work/expected.here" >"$work/expected.data"
[ -s "$work/expected.data" ] && must_fail "$data" "$work/expected.data"
grep -E '^light/' "$work/expected.here" >"$work/expected.light"
[ -s "$work/expected.light" ] && must_fail "$work" "$work/expected.light"

for suite in data given; do
    [ -d "$data/$suite" ] && continue
    say "skipped: $suite, its archive is not in ../shared/data"
    skipped=$((skipped + 1))
done
((passed > 0)) || { say "nothing passed" && failed=$((failed + 1)); }
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
