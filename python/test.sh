#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python package out of a build directory's library and tests the wheel as its users get it: installed into a fresh virtual
# environment, without a compiler in PATH. usage: python/test.sh BUILD-DIR
# With --wheel BUILD-DIR: only makes the wheel of the first Python, if there is none that is newer than its parts; the last line is its path.
#
# Uses $GRT_PYTHON3, else python3 (3.11 or later, with venv and Python.h), and besides a Python of 3.12 or later if there is one, for the wheel
# of the stable ABI, and a free-threaded one (python3.13t, python3.14t). Fetches from PyPI what python/requirements/*.txt pin, into BUILD-DIR/python. Where that cannot be done it
# says why and ends with 77: skipped. The last line is the totals.
set -u
only_wheel=
[ "${1:-}" = --wheel ] && only_wheel=1 && shift
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: test.sh BUILD-DIR}" && pwd) || exit 1
. "$here/../scripts/pypi.sh"
work=$build/python
mkdir -p "$work"
passed=0 failed=0 skipped=0
unset PYTHONPATH PYTHONHOME MAKEFLAGS MAKELEVEL

skip() { echo "skipped: Python package: $1" && exit 77; }
check() # NAME COMMAND...
{
    local name=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1)) && echo "ok: $name"
    else
        failed=$((failed + 1)) && echo "FAILED: $name" && tail -n 30 "$work/out" | sed 's/^/    /'
        return 1
    fi
}
# A later Python beside the default one, whose wheel is another one.
stable_python()
{
    local candidate
    suits "$python" 3.12 && return 1
    for candidate in python3.14 python3.13 python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3; do
        suits "$candidate" 3.12 && echo "$candidate" && return
    done
    return 1
}
# One without a GIL.
free_threaded_python()
{
    local candidate
    for candidate in python3.14t python3.13t "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[3-9]*t/bin/python3; do
        suits "$candidate" 3.13 && echo "$candidate" && return
    done
    return 1
}
fetch() { pypi_fetch "$1" "$here/requirements/$2" "$work/pip.log" "Python package"; }
# make_wheel PYTHON DIRECTORY
make_wheel()
{
    make -s -C "$build" libgraphrt-image.so >"$work/make.log" 2>&1 # where configure found the libraries of its formats
    rm -rf "$2/build-venv" "$2/wheel" && mkdir -p "$2/wheel" && "$1" -m venv "$2/build-venv" && fetch "$2/build-venv" build.txt || return 1
    PATH=$2/build-venv/bin:$PATH GRAPHRT_BUILD=$build check "$(basename "$2"): wheel" "$2/build-venv/bin/python" -m build --wheel --no-isolation \
        --config-setting=build-dir="$2/cmake" --outdir "$2/wheel" "$here"
}
small_and_tagged() # WHEEL MEGABYTES
{
    local wheel=$1 most=$2 size
    size=$(stat -c %s "$wheel")
    echo "$wheel: $size bytes"
    # What a newer glibc than Debian 12's has besides may keep the wheel from older systems: the build says so.
    local tag='manylinux_2_2[0-8]'
    [ "$(printf '%s\n' "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" 2.36 | sort -V | tail -n 1)" = 2.36 ] || tag='manylinux_2_*'
    # shellcheck disable=SC2053 # a pattern
    [[ $wheel == *-${tag}_x86_64.whl ]] && ((size <= most * 1000 * 1000))
}
# older_symbols WHEEL MINIMUM: what each of at least MINIMUM programs and libraries in it wants of the system is no newer than the wheel's tag
# says. Of glibc 2.28's time is GCC 8. The tag is auditwheel's; this looks for itself.
older_symbols()
{
    local newest_glibc file name version n=0 bad=0
    newest_glibc=$(sed -nE 's/.*-manylinux_2_([0-9]+)_.*/2.\1/p' <<<"$1")
    rm -rf "$work/inside" && mkdir -p "$work/inside" && "$python" -m zipfile -e "$1" "$work/inside" || return 1
    while read -r file; do
        [ "$(head -c 4 "$file")" = $'\x7fELF' ] || continue
        n=$((n + 1))
        while read -r name version; do
            newer "$version" "$(limit "$name" "$newest_glibc")" && echo "$file wants ${name}_$version" && bad=1
        done < <(objdump -T "$file" | sed -nE 's/.*\*UND\*.*\((GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)\).*/\1 \2/p' | sort -u)
    done < <(find "$work/inside" -type f ! -name '*.py')
    echo "$n programs and libraries"
    ((n >= $2 && bad == 0))
}
newer() { [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]; }
limit() # NAME GLIBC
{
    case $1,$2 in
    GLIBC,*) echo "$2" ;;
    GLIBCXX,2.28) echo 3.4.25 ;;
    CXXABI,2.28) echo 1.3.11 ;;
    GCC,2.28) echo 7.0.0 ;;
    *) echo 99 ;;
    esac
}
# install DIRECTORY PYTHON [REQUIREMENTS]: no compiler can be found meanwhile.
install()
{
    rm -rf "$1/venv" && "$2" -m venv "$1/venv" && fetch "$1/venv" "${3:-test.txt}" || return 1
    PATH=$1/venv/bin check "$(basename "$1"): pip install $(cd "$1/wheel" && echo *.whl)" "$1/venv/bin/pip" --disable-pip-version-check install --no-deps \
        --no-index "$1"/wheel/*.whl
}
# The first program of docs/python.md.
five_lines()
{
    awk '/^```python$/ { on = 1; next } /^```$/ { if (on) exit } on' "$here/../docs/python.md" >"$work/five.py"
    [ "$(wc -l <"$work/five.py")" = 5 ] && (cd "$here/.." && PATH=$1/venv/bin "$1/venv/bin/python" "$work/five.py") | tee "$work/five.out" &&
        grep -q '99.3' "$work/five.out"
}
# pytest's totals, added to ours.
run_tests() # DIRECTORY FILE...
{
    local directory=$1 p f s
    shift
    make -s -C "$build" libgraphrt-mirror.so >"$work/make.log" 2>&1 && export GRAPHRT_BACKEND_PATH=$build
    [ -e "$build/examples/.libs/custom_ops.so" ] && export CUSTOM_OPS=$build/examples/.libs/custom_ops.so
    (cd "$here/tests" && PATH=$directory/venv/bin "$directory/venv/bin/python" -m pytest -q -p no:cacheprovider -W ignore::RuntimeWarning \
        --tb=short "$@") >"$work/pytest.log" 2>&1
    grep -E '^(FAILED|ERROR)|^E  ' "$work/pytest.log" | cut -c 1-300
    read -r p f s < <(pytest_totals "$work/pytest.log")
    ((f == 0)) || tail -n 20 "$work/pytest.log"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    echo "$(basename "$directory"): $(tail -n 1 "$work/pytest.log")"
}

# The second wheel, where the build has the CUDA module. Without a GPU: it is found, and says what it lacks.
cuda_wheel() # DIRECTORY
{
    if [ ! -e "$build/libgraphrt-cuda.so" ]; then
        skipped=$((skipped + 1)) && echo "skipped: the wheel of the CUDA module: make libgraphrt-cuda.so has not made it"
        return
    fi
    rm -rf "$1/cuda" && mkdir -p "$1/cuda"
    PATH=$1/build-venv/bin:$PATH GRAPHRT_BUILD=$build check "the wheel of the CUDA module" "$1/build-venv/bin/python" -m build --wheel --no-isolation \
        --outdir "$1/cuda" "$here/cuda" || return
    check "the wheel of the CUDA module has at most 44 MB and is for glibc 2.28" small_and_tagged "$1"/cuda/*.whl 44
    check "nothing in the wheel of the CUDA module wants newer symbols" older_symbols "$1"/cuda/*.whl 1
    check "the CUDA module is installed beside the library" "$1/venv/bin/pip" --disable-pip-version-check install --no-deps --no-index "$1"/cuda/*.whl
    check "the CUDA module is found, and counts GPUs or says why there is none" env -u GRAPHRT_BACKEND_PATH "$1/venv/bin/python" "$here/cuda/test_found.py"
}

python=${GRT_PYTHON3:-$(command -v python3)}
suits "$python" 3.11 || skip "needs Python 3.11 or later with venv and Python.h (python3-venv, python3-dev)"
first=$work/$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
mkdir -p "$first"
if [ -n "$only_wheel" ]; then
    wheel=$(find "$first/wheel" -name '*.whl' 2>/dev/null | head -n 1)
    if [ -z "$wheel" ] || find "$here/graphrt" "$here/native" "$build/.libs/libgraphrt.so" -newer "$wheel" -type f ! -name '*.pyc' | grep -q .; then
        make_wheel "$python" "$first" || exit 1
    fi
    find "$first/wheel" -name '*.whl'
    exit
fi
if make_wheel "$python" "$first" && install "$first" "$python"; then
    check "the wheel has at most 25 MB and is for glibc 2.28" small_and_tagged "$first"/wheel/*.whl 25
    check "nothing in the wheel wants newer symbols" older_symbols "$first"/wheel/*.whl 6
    check "references are set back to older glibc" env PATH="$first/build-venv/bin:$PATH" PYTHONPATH="$here/packaging" \
        "$first/build-venv/bin/python" -B "$here/packaging/test_older_glibc.py"
    check "digits in five lines" five_lines "$first"
    run_tests "$first"
    cuda_wheel "$first"
else
    failed=$((failed + 1))
fi
if later=$(stable_python); then
    mkdir -p "$work/abi3"
    if make_wheel "$later" "$work/abi3" && install "$work/abi3" "$later"; then
        check "digits in five lines, $("$later" -V)" five_lines "$work/abi3"
        run_tests "$work/abi3" test_session.py test_arrays.py test_streams.py test_maps.py test_pool.py test_threads.py test_ort.py
    else
        failed=$((failed + 1))
    fi
fi
if free=$(free_threaded_python); then
    mkdir -p "$work/free"
    if make_wheel "$free" "$work/free" && install "$work/free" "$free" threads.txt; then
        run_tests "$work/free" test_threads.py test_session.py test_arrays.py test_pool.py test_maps.py
    else
        failed=$((failed + 1))
    fi
else
    skipped=$((skipped + 1)) && echo "skipped: the wheel for free-threaded Python: there is no python3.13t or python3.14t"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
