# Slurm on this machine, with daemons of its own: nothing of the system's Slurm is used or changed. Sourced by the tests here.
#   begin_slurm NODES CPUS [LINE OF slurm.conf]...
# Ends the script with "skipped" where Slurm cannot be. Afterwards $work is a folder that vanishes, with all daemons, at the end.
PATH=$PATH:/usr/sbin

pids=()
finish() {
    # Of our own Slurm alone: before it is begun, the variable may name the system's.
    [[ ${SLURM_CONF:-} == "$work"/* ]] && { scancel --quiet --user root 2>/dev/null || true; }
    ((${#pids[@]})) && kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}

begin_slurm() {
    local nodes=$1 cpus=$2 port program node i idle
    shift 2
    for program in munged slurmctld slurmd sbatch; do
        command -v "$program" >/dev/null ||
            { echo "skipped: needs $program (Debian: apt install slurm-wlm munge)"; exit 0; }
    done
    [[ $(id -u) == 0 ]] || { echo "skipped: needs root, to start Slurm's daemons"; exit 0; }

    work=$(mktemp -d)
    chmod 755 "$work"
    trap finish EXIT
    mkdir -p "$work"/{state,munge,results}
    head -c 1024 /dev/urandom >"$work/munge/key"
    chmod 700 "$work/munge"
    chmod 400 "$work/munge/key"
    munged --foreground --force --key-file "$work/munge/key" --socket "$work/munge.sock" --pid-file "$work/munge/pid" \
        --log-file "$work/munge/log" --seed-file "$work/munge/seed" 2>/dev/null &
    pids+=($!)
    port=$((20000 + RANDOM % 20000))
    export SLURM_CONF=$work/slurm.conf
    cat >"$SLURM_CONF" <<END
ClusterName=sweep
SlurmctldHost=$(hostname)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.sock
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/%n.log
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
SchedulerParameters=sched_min_interval=0
$(printf '%s\n' "$@")
PartitionName=all Nodes=n[1-$nodes] Default=YES State=UP
END
    for ((node = 1; node <= nodes; node++)); do
        echo "NodeName=n$node NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + node)) CPUs=$cpus" >>"$SLURM_CONF"
    done
    slurmctld -D >/dev/null 2>&1 &
    pids+=($!)
    for ((node = 1; node <= nodes; node++)); do
        slurmd -D -N "n$node" >/dev/null 2>&1 &
        pids+=($!)
    done
    for ((i = 0; ; i++)); do
        idle=$(sinfo --noheader --format %t%D 2>/dev/null | sed -n 's/^idle//p')
        [[ $idle == "$nodes" ]] && break
        ((i < 300)) || { echo "skipped: Slurm's daemons do not come up here:"; tail -n 20 "$work"/*.log; exit 0; }
        sleep 0.2
    done
}
