# SPDX-License-Identifier: Apache-2.0
# Fetching from PyPI, for tests that want more than Debian has: sourced, not run.
# shellcheck shell=bash

# pypi_fetch VENV REQUIREMENTS LOG WHAT: install what REQUIREMENTS pins by hash, and nothing else, and say what came. A network that is
# not there is no failure: "skipped: WHAT: ..." and exit status 77.
pypi_fetch()
{
    if ! "$1/bin/pip" --disable-pip-version-check install --quiet --require-hashes --only-binary :all: -r "$2" >"$3" 2>&1; then
        if grep -qiE 'from versions: none|connection|resolution|network|timed out|max retries|proxy' "$3" && ! grep -q 'DO NOT MATCH' "$3"; then
            echo "skipped: $4: PyPI cannot be reached ($(tail -n 1 "$3" | cut -c 1-120))"
            exit 77
        fi
        cat "$3"
        return 1
    fi
    echo "fetched from PyPI: $("$1/bin/pip" freeze --all 2>/dev/null | grep -vE '^(pip|setuptools)==' | tr '\n' ' ')"
}

# pypi_venv PYTHON VENV REQUIREMENTS WHAT: a virtual environment with these, made again only when the requirements change.
pypi_venv()
{
    cmp -s "$3" "$2/requirements" && return
    rm -rf "$2"
    "$1" -m venv "$2" && pypi_fetch "$2" "$3" "$2.log" "$4" && cp "$3" "$2/requirements"
}

# suits PYTHON VERSION: virtual environments and extension modules can be made with it, and it is at least that version.
suits()
{
    "$1" -c 'import sys, sysconfig, os, venv, ensurepip
sys.exit(sys.version_info < tuple(map(int, sys.argv[1].split("."))) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' "$2" 2>/dev/null
}

# pytest_totals LOG: "passed failed skipped" of a run of pytest. What is expected to fail counts as skipped.
pytest_totals()
{
    local p=0 f=0 s=0 n key last
    last=$(tail -n 1 "$1")
    [[ $last == *passed* ]] || f=1
    while read -r n key; do
        case $key in
        passed) p=$((p + n)) ;;
        failed | error | errors | xpassed) f=$((f + n)) ;;
        skipped | xfailed) s=$((s + n)) ;;
        esac
    done < <(grep -oE '[0-9]+ [a-z]+' <<<"$last" | grep -vE 'warning|deselected')
    echo "$p $f $s"
}
