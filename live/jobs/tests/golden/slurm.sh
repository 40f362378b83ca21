#!/bin/bash
# two at a time, 50%, strategy all: 5 programs on one node, each a step of this job. Made by
#   varve jobs plan group.toml
# Submit it in the folder where that ran: sbatch FILE
#SBATCH --job-name=two_at_a_time__50_
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --output=%x-%j.log
# Not as planned: programs wait for those that the plan expects to end by then, as a b does, and not for whatever ends first
# Not as planned: the scheduler does not enforce the group's limit of 4 GiB of fast memory
# Not as planned: of several nodes the first is preferred: the others of slow memory are as good as any node
# Not as planned: pages of a running step cannot move: solver is in slow memory from its start, and not only once a_b comes
# Not as planned: pages of a running step cannot move: a b is in slow memory from its start, and not only once a_b comes
# Not as planned: which processors a step gets is Slurm's choice: on several sockets they may be far from its memory
# Not as planned: programs without a command are their workloads at 1/512 of their size (--scale 1: in full)

scontrol show config 2>/dev/null | grep -q '^TaskPlugin .*task/affinity' ||
    echo "$SLURM_JOB_NAME: programs are not placed: Slurm binds no memory without TaskPlugin=task/affinity" >&2
mkdir -p 'logs of it' || exit 1

# Steps by number, what each waits for, and its name.
after=('' '' 1 0 3)
names=(solver loader a_b_4 a_b pinned)
step() {
    case $1 in
    0) srun --job-name=solver --nodes=1 --ntasks=1 --mem=0 --exact --cpus-per-task=2 --mem-bind=prefer,mask_mem:0xc bash -c 'cpus=$(sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status)
exec timeout --kill-after=2 90 env OMP_NUM_THREADS=2 PLACES="$cpus" SHARE=50% ./solver --on "$cpus" --say '\''it'\''\'\'''\''s $HOME'\''' >'logs of it/solver-all.log' 2>&1 ;;
    1) srun --job-name=loader --nodes=1 --ntasks=1 --mem=0 --exact --cpus-per-task=2 --mem-bind=prefer,map_mem:0 env OMP_NUM_THREADS=2 varve run loader.wasm -- fast 0 >'logs of it/loader-all.log' 2>&1 ;;
    2) srun --job-name=a_b --nodes=1 --ntasks=1 --mem=0 --exact --cpus-per-task=2 --mem-bind=prefer,map_mem:0 env OMP_NUM_THREADS=2 varve jobs exercise ocean_cp:bytes=3GiB,threads=2,scale=512,seed=1 >'logs of it/a_b_4-all.log' 2>&1 ;;
    3) srun --job-name=a_b --nodes=1 --ntasks=1 --mem=0 --exact --cpus-per-task=2 --mem-bind=prefer,mask_mem:0xc env OMP_NUM_THREADS=2 true >'logs of it/a_b-all.log' 2>&1 ;;
    4) srun --job-name=pinned --nodes=1 --ntasks=1 --mem=0 --exact --cpus-per-task=2 --mem-bind=prefer,mask_mem:0xc env OMP_NUM_THREADS=2 sh -c 'echo 2' >'logs of it/pinned-all.log' 2>&1 ;;
    esac
}

# Each step tells here that it has ended.
ends=$(mktemp -u)
mkfifo "$ends" && exec 3<>"$ends" && rm "$ends" || exit 1
running=0 failed=0 stopping=
waiting=("${!names[@]}")
over=()
while :; do
    rest=()
    for i in "${waiting[@]}"; do
        free=1
        for a in ${after[i]}; do [[ ${over[a]} ]] || free=; done
        if [[ $free && ! $stopping ]]; then
            { step "$i"; echo "$i $?" >&3; } &
            running=$((running + 1))
        else
            rest+=("$i")
        fi
    done
    waiting=("${rest[@]}")
    ((running)) || break
    read -r i code <&3
    running=$((running - 1)) over[i]=1
    if ((code)); then
        echo "$SLURM_JOB_NAME: ${names[i]} ended with exit code $code" >&2
        failed=1
        # A program that fails ends all others.
        stopping=1
        scancel --signal=TERM "$SLURM_JOB_ID"
    fi
done
exit "$failed"
