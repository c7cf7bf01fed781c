#!/bin/bash
# Checks that the rooms depend on each other in one direction only, as docs/decisions/rooms.md says, by reading #include lines.
# usage: scripts/check-includes.sh [SOURCE-DIR]; the last line is "N passed, N failed, N skipped" (one per source file).
set -u
cd "${1:-${srcdir:-$(dirname "$0")/..}}" || exit 1

# What files matching a pattern may include: the first row that fits a file counts. Quoted includes and library headers alike are
# matched against the extended regular expression; headers of the C library and POSIX are always allowed,
# and C++'s own, which CUDA files and oneDNN's include.
rules()
{
    cat <<'END'
include/                ^$
src/plan_signature      ^(graphrt/|src/|sodium\.h)
src/base/               ^(graphrt/|src/base/|proto/|protobuf-c/|uthash\.h|xxhash\.h|config\.h|omp\.h)
src/                    ^(graphrt/|src/|proto/|protobuf-c/|sqlite3\.h|graph/(compile|op|pass|ir)\.h|backends/(algos|backend|kernel)\.h|xxhash\.h|config\.h)
graph/                  ^(graphrt/|graph/|src/base/|src/plan(_format)?\.h|proto/|protobuf-c/|graph_ops\.inc|xxhash\.h|config\.h)
backends/cpu/dnnl       ^(graphrt/|backends/(algos|backend|kernel)\.h|backends/cpu/|src/base/|oneapi/dnnl/|dnnl|omp\.h|config\.h)
backends/cpu/           ^(graphrt/|backends/(algos|attention|backend|element|kernel|optimizer|order|random|resize|tree|window)\.h|backends/cpu/|graph/ops/pointwise\.(h|def)|src/base/|cpu_kernels\.inc|immintrin\.h|omp\.h|config\.h)
backends/cuda/          ^(graphrt/|backends/(algos|attention|backend|element|kernel|module|optimizer|order|random|resize|tree|window)\.h|backends/cuda/|graph/ops/pointwise\.(h|def)|src/base/|cuda|math_constants\.h|cudnn|cublas|nvrtc|config\.h)
backends/null/          ^(graphrt/|backends/(algos|backend|kernel)\.h|backends/null/|src/base/|config\.h)
backends/               ^(graphrt/|backends/(algos|attention|backend|element|kernel|module|optimizer|order|random|resize|tree|window)\.h|src/base/|config\.h)
tools/                  ^(graphrt/|tools/|jansson\.h|config\.h)
examples/               ^(graphrt/|examples/)
models/                 ^(models/|proto/|protobuf-c/|config\.h)
END
}
system='^(assert|complex|ctype|errno|fcntl|fenv|float|inttypes|limits|locale|math|pthread|sched|setjmp|signal|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|threads|time|unistd|dirent|dlfcn|getopt|glob|fnmatch|libgen|poll|semaphore|spawn|termios|linux/[a-z0-9_]+|sys/[a-z]+|wchar|wctype)\.h$|^(algorithm|atomic|climits|cmath|cstdarg|cstdint|cstdlib|cstring|future|limits|new|stdexcept|type_traits|utility)$'

# Includes of file $1, as paths from the top: a header beside the file is meant where there is one.
includes_of()
{
    local file=$1 dir header
    dir=$(dirname "$file")
    sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]+)[>"].*/\1/p' "$file" | while read -r header; do
        if [ -f "$dir/$header" ]; then echo "$dir/$header"; else echo "$header"; fi
    done
}

# "file header rule" for every include that its room's row does not allow.
passed=0
failed=0
while read -r file; do
    allowed=
    while read -r prefix pattern; do
        case $file in "$prefix"*)
            allowed=$pattern
            break
            ;;
        esac
    done < <(rules)
    bad=$(includes_of "$file" | grep -Ev "$system" | grep -Ev "$allowed")
    if [ -z "$bad" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        while read -r header; do
            echo "$file includes $header, which its room may not (docs/decisions/rooms.md)"
        done <<<"$bad"
    fi
done < <(find include src graph backends tools examples models -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.def' | sort)

((passed + failed > 0)) || failed=1
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
