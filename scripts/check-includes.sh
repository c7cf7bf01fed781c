#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks by reading #include lines that the rooms depend on each other in one direction only: never upwards, and never in a
# circle of files. docs/decisions/rooms.md says why.
# usage: scripts/check-includes.sh [SOURCE-DIR]; the last line is "N passed, N failed, N skipped" (one per source file).
#        scripts/check-includes.sh --rooms lists the rooms, lowest first.
set -u
[ "${1:-}" = --rooms ] && list=1 && shift
cd "${1:-${srcdir:-$(dirname "$0")/..}}" || exit 1

# The rooms, lowest first. A file belongs to the longest folder that is named here, and includes its own room's and lower
# rooms' headers only. Then: the headers of libraries that the room may include, and, where that is less than all below it,
# what of this project it sees. Extended regular expressions; "-" is none.
rooms()
{
    cat <<'END'
include         -                                   -
proto           protobuf-c/                         -
src/base        uthash\.h|xxhash\.h|omp\.h|nvtx3/   graphrt/|src/base/
src/onnx        protobuf-c/                         graphrt/|proto/|src/
graph/ir        xxhash\.h                           graphrt/|src/|graph/
graph/ops       -                                   graphrt/|src/|graph/
src/plan        xxhash\.h|sodium\.h                 graphrt/|proto/|src/|graph/
graph/import    -                                   graphrt/|proto/|src/|graph/
graph/passes    xxhash\.h                           graphrt/|src/|graph/
graph           -                                   graphrt/|src/|graph/
backends        xxhash\.h                           graphrt/|src/base/|backends/
backends/shared -                                   graphrt/|src/base/|backends/
backends/image  (jpeglib|openjpeg|png|tiffio)\.h|webp/  backends/image/
backends/cpu    immintrin\.h|cpuid\.h|omp\.h        graphrt/|src/base/|backends/[a-z_]+\.h|backends/shared/|backends/image/image\.h|backends/cpu/
backends/cuda   cuda|cudnn|cublas|nvrtc|math_constants\.h  graphrt/|src/base/|backends/[a-z_]+\.h|backends/shared/|backends/cuda/
backends/null   -                                   graphrt/|src/base/|backends/[a-z_]+\.h|backends/shared/|backends/null/
src/algos       sqlite3\.h|xxhash\.h                graphrt/|proto/|src/|graph/|backends/[a-z_]+\.h
src/call        xxhash\.h                              graphrt/|src/|graph/|backends/[a-z_]+\.h
src/target      -                                   graphrt/|src/|graph/|backends/[a-z_]+\.h
src/session     xxhash\.h                           graphrt/|src/|graph/|backends/[a-z_]+\.h
src/exec        -                                   graphrt/|src/|graph/|backends/[a-z_]+\.h
src/process     -                                   graphrt/|src/|graph/|backends/[a-z_]+\.h
src/pool        -                                   graphrt/|src/|graph/|backends/[a-z_]+\.h
src/api         sqlite3\.h                          graphrt/|src/|graph/|backends/[a-z_]+\.h
src/quantize    xxhash\.h                           graphrt/|proto/|src/|graph/
models          protobuf-c/                         proto/|models/
tools           jansson\.h                          graphrt/|tools/
examples        -                                   graphrt/|examples/
python          nanobind/                           graphrt/|python/
serving/triton  jansson\.h|emmintrin\.h             graphrt/|serving/triton/
END
}
[ "${list:-}" ] && rooms | cut -d' ' -f1 && exit
# The only files that meet a library whose calls must be guarded.
oneDNN='^backends/cpu/dnnl'
dnnl='^(oneapi/dnnl/|dnnl)'
# The C library and POSIX, and the C++ headers that CUDA files and oneDNN's guard include.
system='^(assert|complex|ctype|errno|execinfo|fcntl|fenv|float|inttypes|limits|locale|malloc|math|pthread|sched|setjmp|signal|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|threads|time|unistd|dirent|dlfcn|getopt|glob|fnmatch|libgen|link|poll|semaphore|spawn|termios|linux/[a-z0-9_]+|sys/[a-z]+|wchar|wctype)[.]h$|^(algorithm|array|atomic|chrono|climits|cmath|condition_variable|cstdarg|cstdint|cstdlib|cstring|deque|exception|future|initializer_list|iostream|limits|memory|mutex|new|optional|set|sstream|stdexcept|string|thread|type_traits|utility|vector)$'

files() { find include src graph backends tools examples models python serving -regextype posix-extended -regex '.*\.(c|h|hpp|cc|cu|cuh|inc|def)' | sort; }

# "FILE HEADER" for each #include; a header beside the file is meant where there is one.
includes()
{
    files | xargs -r grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' |
        sed -nE 's/^([^:]+):[^<"]*[<"]([^>"]+)[>"].*/\1 \2/p' |
        while read -r file header; do
            if [ -f "${file%/*}/$header" ]; then echo "$file ${file%/*}/$header"; else echo "$file $header"; fi
        done
}

all=$(includes)
upwards=$({ rooms; echo; echo "$all"; } | awk -v system_="$system" -v onednn="$oneDNN" -v dnnl="$dnnl" '
    function room_of(path,    r, best) {
        best = ""
        for (r in rank)
            if (index(path, r "/") == 1 && length(r) > length(best))
                best = r
        return best
    }
    !rows { if (NF == 0) rows = 1; else { rank[$1] = ++n; libs[$1] = $2; sees[$1] = $3 }; next }
    {
        file = $1; header = $2
        if (header ~ system_ || header ~ /^config\.h$|^[a-z_]+\.inc$/ || (header ~ dnnl && file ~ onednn))
            next
        from = room_of(file); to = room_of(header ~ /^graphrt\// ? "include/" header : header)
        if (to == "") {
            if (libs[from] == "-" || header !~ "^(" libs[from] ")")
                print file " includes " header ", which is no library of its room"
        } else if (rank[to] > rank[from])
            print file " includes " header ", which is in a room above"
        else if (from != to && (sees[from] == "-" || header !~ "^(" sees[from] ")"))
            print file " includes " header ", which its room may not see"
    }')
# A source and its header are one unit; tsort names the units that cannot be put in an order.
circles=$(echo "$all" | awk '{ gsub(/\.(c|h|cc|cu|cuh|inc|def)$/, "", $1); gsub(/\.(c|h|cc|cu|cuh|inc|def)$/, "", $2); if ($1 != $2) print }' |
    tsort 2>&1 >/dev/null | grep -v 'input contains a loop' | sed 's/^tsort: //; s/$/ is in a circle of includes/')


bad=$(printf '%s\n%s\n' "$upwards" "$circles" | grep .)
total=$(files | wc -l)
failed=$(echo "$bad" | awk 'NF { print $1 }' | sort -u | wc -l)
[ -n "$bad" ] && echo "$bad (docs/decisions/rooms.md)"
((total > 0)) || failed=1
echo "$((total - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
