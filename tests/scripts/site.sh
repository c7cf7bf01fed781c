#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The references are complete, the documents make a site whose links lead somewhere, and the operator's commands work.
set -u
. "$(dirname "$0")/lib.sh"

if command -v python3 >/dev/null; then
    check "public functions have descriptions, and in C the threads that may call them and how they fail" python3 "$srcdir/scripts/reference.py" --check
    undescribed()
    {
        cp -R "$srcdir/scripts" "$srcdir/include" "$srcdir/python" "$scratch/" &&
            sed -i 's/^ \* Threads: any\. \(Errors: INVALID_ARGUMENT, OUT_OF_MEMORY\.\)/ * \1/' "$scratch/include/graphrt/session.h"
        ! python3 "$scratch/scripts/reference.py" --check >"$scratch/lacking" && grep -q 'grt_runtime_create does not say which threads' "$scratch/lacking"
    }
    check "a function that says nothing of threads is found" undescribed
    silent_of_errors()
    {
        cp -R "$srcdir/include" "$scratch/" && sed -i 's/ Errors: INVALID_ARGUMENT, OUT_OF_MEMORY\. \*\/$/ *\//' "$scratch/include/graphrt/session.h"
        ! python3 "$scratch/scripts/reference.py" --check >"$scratch/lacking" && grep -q 'grt_runtime_create does not say how it fails' "$scratch/lacking"
    }
    check "a function that says nothing of errors is found" silent_of_errors
    status=0
    python3 "$srcdir/scripts/site.py" "$scratch/site" >"$scratch/said" 2>&1 || status=$?
    if [ $status = 77 ]; then
        skip "the site" "$(tail -n 1 "$scratch/said")"
    else
        made() { cat "$scratch/said" && [ "$status" = 0 ]; }
        check "the documents make a site, and its links lead somewhere" made
        holds() { grep -q 'grt_context_run_async' "$scratch/site/docs/reference-c.html" && grep -q 'class Session' "$scratch/site/docs/reference-python.html"; }
        check "the site has the references" holds
    fi
else
    skip "references and site" "there is no python3"
fi

operate()
{
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/docs/operator.md" >"$scratch/operate.sh"
    [ "$(wc -l <"$scratch/operate.sh")" -ge 9 ] && (PATH=$PWD:$PATH && export work=$scratch && cd "$srcdir" && bash -e "$scratch/operate.sh")
}
check "the commands of docs/operator.md work" operate
finish
