#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# graphrun --shard: every input is done once, however many processes there are and whatever becomes of them.
set -u
. "$(dirname "$0")/lib.sh"
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE SLURM_PROCID SLURM_STEP_NUM_TASKS RANK WORLD_SIZE
n=60      # inputs
many=240  # of those that ranks are killed at
mkdir "$scratch/in"
for i in $(seq -w $n); do ln "$srcdir/models/digits/test_images.npy" "$scratch/in/$i.npy" 2>/dev/null || cp "$srcdir/models/digits/test_images.npy" "$scratch/in/$i.npy"; done
./graphc optimize "$srcdir/models/digits/digits.onnx" -o "$scratch/m.grt" >/dev/null || exit 99
# job INPUTS DIRECTORY OPTION...
job() { ./graphrun "$scratch/m.grt" --threads 1 --input image="$1" --output-dir "${@:2}"; }
three_shards() { for i in 0 1 2; do job "$scratch/in" "$scratch/three" --shard "$i/3" || return; done; }
says() { local want=$1; shift; "$@" >"$scratch/said" 2>&1 && grep -q -- "$want" "$scratch/said"; }
lines() { cat "$1"/shard-*.jsonl 2>/dev/null | grep -c '"ms"'; }
# Each input has one line over all manifests, and the outputs of a run that was never interrupted.
complete()
{
    [ "$(cat "$1"/shard-*.jsonl | grep -o '"index":[0-9]*,"input":"[0-9]*' | sort -u | wc -l)" = "$n" ] && [ "$(lines "$1")" = "$n" ] &&
        diff -r -x '*.json*' "$whole" "$1" && ! find "$1" -name '.graphrt.tmp-*' | grep .
}

whole=$scratch/whole
job "$scratch/in" "$whole" >/dev/null || exit 99
check "three shards" three_shards
check "all is done once" complete "$scratch/three"
check "again: nothing is left" says "0 inputs to run; of all $n, $n were done" job "$scratch/in" "$scratch/three" --shard 1/3
check "again, other shards" says "0 inputs to run" job "$scratch/in" "$scratch/three" --shard 0/1
check "no launcher: one process does all" says "shard 0 of 1 (no launcher): $n inputs" job "$scratch/in" "$scratch/alone" --shard auto
check "all is done" complete "$scratch/alone"
check "Slurm's steps" says "shard 3 of 4 (Slurm): 15 inputs" env SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=1 "SLURM_STEP_TASKS_PER_NODE=2(x2)" \
    ./graphrun "$scratch/m.grt" --input image="$scratch/in" --output-dir "$scratch/slurm" --shard auto
check "a batch script of Slurm is no step" says "no launcher" env SLURM_PROCID=0 SLURM_NTASKS=4 ./graphrun "$scratch/m.grt" --input image="$scratch/in" --output-dir "$scratch/batch" --shard auto
check "PMI" says "shard 1 of 2 (PMI)" env PMI_RANK=1 PMI_SIZE=2 ./graphrun "$scratch/m.grt" --input image="$scratch/in" --output-dir "$scratch/pmi" --shard auto
# Eight devices, the second of three processes of this machine: 1, 4 and 7.
check "devices are shared out" says "on 3 devices" env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=3 \
    ./graphrun "$scratch/m.grt" --device null:all --input image="$scratch/in" --output-dir "$scratch/devices" --shard auto
check "more processes than devices share one" says "on 1 devices" env OMPI_COMM_WORLD_RANK=9 OMPI_COMM_WORLD_SIZE=10 OMPI_COMM_WORLD_LOCAL_RANK=9 OMPI_COMM_WORLD_LOCAL_SIZE=10 \
    ./graphrun "$scratch/m.grt" --device null:all --input image="$scratch/in" --output-dir "$scratch/crowd" --shard auto

# A list is a source, too; a wrong input is left for the next job.
find "$scratch/in" -name '*.npy' | sort >"$scratch/list"
check "a list of files" job "@$scratch/list" "$scratch/listed" --shard 0/1
check "all of the list is done" complete "$scratch/listed"
cp -r "$scratch/in" "$scratch/bad" && rm "$scratch/bad/07.npy" && echo x >"$scratch/bad/07.npy"
refuse 2 "an input that fails" job "$scratch/bad" "$scratch/mended" --shard 0/1
cp "$scratch/in/08.npy" "$scratch/bad/07.npy"
check "it is done when it is mended" says "1 inputs to run" job "$scratch/bad" "$scratch/mended" --shard 0/2
job "$scratch/bad" "$scratch/mended" --shard 1/2 >/dev/null
check "then all is done" complete "$scratch/mended"

# What would lose results or mix them.
mkdir "$scratch/fewer" && cp "$scratch"/in/0* "$scratch/fewer"
refuse 2 "another list of inputs" job "$scratch/fewer" "$scratch/three" --shard 0/3
mkdir "$scratch/renamed" && for i in $(seq -w $n); do cp "$scratch/in/$i.npy" "$scratch/renamed/x$i.npy"; done
refuse 2 "as many inputs of other names" job "$scratch/renamed" "$scratch/three" --shard 0/3
refuse 2 "another model" ./graphrun "$srcdir/models/digits/digits.onnx" --input image="$scratch/in" --output-dir "$scratch/three" --shard 0/3
for bad in 3/3 x 1/ /2 1/0 -1/2 1/2x; do refuse 2 "bad use: --shard $bad" job "$scratch/in" "$scratch/none" --shard "$bad"; done
refuse 2 "no directory of inputs" ./graphrun "$scratch/m.grt" --output-dir "$scratch/none" --shard 0/2
refuse 2 "no output directory" ./graphrun "$scratch/m.grt" --input image="$scratch/in" --shard 0/2
refuse 2 "--json" job "$scratch/in" "$scratch/none" --shard 0/2 --json
# A second process on a shard, and a second job of another size, stay out while one is at work.
mkfifo "$scratch/wait.npy" && mkdir "$scratch/slow" && cp "$scratch"/in/1*.npy "$scratch/slow" && ln -s "$scratch/wait.npy" "$scratch/slow/20.npy"
./graphrun "$scratch/m.grt" --threads 1 --input image="$scratch/slow" --output-dir "$scratch/locked" --shard 0/2 >/dev/null 2>&1 & # its own process: a function's would outlive the kill
at_work=$!
wait_until test -s "$scratch/locked/job.json" -a -e "$scratch/locked/shard-0-of-2.jsonl"
refuse 2 "a second process on a shard" job "$scratch/slow" "$scratch/locked" --shard 0/2
refuse 2 "a second job of another size" job "$scratch/slow" "$scratch/locked" --shard 0/3
kill -9 $at_work && wait $at_work 2>/dev/null

# Ranks are killed, three times; then as many as there were, and at last other ones, do what is left. However fast they are, none gets
# past the last inputs, which nobody writes until then.
if command -v mpirun >/dev/null; then
    ranks() # NUMBER DIRECTORY
    {
        # shellcheck disable=SC2016 # for the shell of each rank
        OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm_rsh_agent=/bin/false mpirun --allow-run-as-root -n "$1" sh -c 'echo $$ >>"$0.pids"; exec ./graphrun "$1" --threads 1 --input image="$2" --output-dir "$0" --shard auto' \
            "$2" "$scratch/m.grt" "$scratch/many"
    }
    more_than() { (($(lines "$2") >= $1)) || ! kill -0 "$job_pid" 2>/dev/null; }
    # Kills three ranks when there are so many lines.
    kill_after() # LINES DIRECTORY
    {
        : >"$2.pids"
        ranks 3 "$2" >"$scratch/mpi.log" 2>&1 &
        job_pid=$!
        wait_until more_than "$1" "$2"
        xargs kill -9 <"$2.pids" 2>/dev/null
        wait $job_pid 2>/dev/null
    }
    in_the_middle() { echo "$(lines "$1") lines, wanted $2 to $((n - 1))" && (($(lines "$1") >= $2 && $(lines "$1") < n)); }
    withhold() { for i in "${last[@]}"; do rm "$scratch/many/$i.npy" && mkfifo "$scratch/many/$i.npy"; done; }
    give() { for i in "${last[@]}"; do ln -f "$scratch/in/01.npy" "$scratch/many/$i.npy"; done; }

    mkdir "$scratch/many"
    for i in $(seq -w $many); do ln "$scratch/in/01.npy" "$scratch/many/$i.npy"; done
    last=("$many" $((many - 1)) $((many - 2)))
    job "$scratch/many" "$scratch/whole-many" >/dev/null
    n=$many whole=$scratch/whole-many
    withhold
    for round in 1 2 3; do kill_after $((round * 40)) "$scratch/killed"; done
    check "killed in the middle" in_the_middle "$scratch/killed" 120
    printf '{"index":5,"inp' >>"$scratch/killed/shard-0-of-3.jsonl" # a line that was not finished
    give
    check "three ranks again" ranks 3 "$scratch/killed"
    check "nothing is lost, nothing done twice" complete "$scratch/killed"
    withhold
    kill_after 40 "$scratch/changed"
    check "killed again" in_the_middle "$scratch/changed" 40
    give
    check "five ranks go on for three" ranks 5 "$scratch/changed"
    check "and nothing is lost or done twice" complete "$scratch/changed"
else
    skip "ranks of MPI" "there is no mpirun (openmpi-bin)"
fi
finish
