#!/bin/sh
# two at a time, 50%, strategy all: 5 programs, each a service in varve-two_at_a_time__50_.slice. Made by
#   varve jobs plan group.toml
# Run it in the folder where that ran:
#   sh FILE              as root: writes the units, starts them, and waits for their end
#   sh FILE FOLDER       writes the units there, and starts nothing
#   systemctl stop varve-two_at_a_time__50_.slice    ends all
# Not as planned: programs wait for those that the plan expects to end by then, as a b does, and not for whatever ends first
# Not as planned: the scheduler does not enforce the group's limit of 4 GiB of fast memory
# Not as planned: of several nodes the first is preferred: the others of slow memory are as good as any node
# Not as planned: a program whose pages were moved may take slow memory alone from then on: the kernel ends it where that has no room
# Not as planned: programs without a command are their workloads at 1/512 of their size (--scale 1: in full)
set -eu
folder=${1:-/run/systemd/system}
mkdir -p "$folder" 'logs of it'
# In units, % begins what systemd fills in.
here=$(pwd | sed 's/%/%%/g')
path=$(printf %s "$PATH" | sed 's/%/%%/g')
user=${SUDO_USER:-$(id -un)}
service() {
    {
        cat
        echo "User=$user"
        echo "WorkingDirectory=$here"
        echo "Environment=\"PATH=$path\""
        echo "StandardOutput=truncate:$2"
        echo "StandardError=inherit"
    } >"$folder/$1.service"
}

cat >"$folder/varve-two_at_a_time__50_.slice" <<'END'
[Unit]
Description=two at a time, 50%%

[Slice]
AllowedCPUs=0-7
AllowedMemoryNodes=0 2-3
END

service varve-two_at_a_time__50_-solver "$here"/'logs of it/solver-all.log' <<'END'
[Unit]
Description=solver of two at a time, 50%%

[Service]
Type=oneshot
Slice=varve-two_at_a_time__50_.slice
AllowedCPUs=0-1
NUMAPolicy=preferred
NUMAMask=0
TimeoutStartSec=90
TimeoutStopSec=2
Environment="OMP_NUM_THREADS=2"
Environment="PLACES=0,1"
Environment="SHARE=50%%"
ExecStart=/usr/bin/env "./solver" "--on" "0,1" "--say" "it's $$HOME"
ExecStopPost=+/bin/sh -c "[ $$SERVICE_RESULT = success ] || systemctl --no-block stop varve-two_at_a_time__50_.slice"
END

service varve-two_at_a_time__50_-loader "$here"/'logs of it/loader-all.log' <<'END'
[Unit]
Description=loader of two at a time, 50%%

[Service]
Type=oneshot
Slice=varve-two_at_a_time__50_.slice
AllowedCPUs=2-3
NUMAPolicy=preferred
NUMAMask=0
TimeoutStopSec=2
Environment="OMP_NUM_THREADS=2"
ExecStart=/usr/bin/env "varve" "run" "loader.wasm" "--" "fast" "0"
ExecStopPost=+/bin/sh -c "[ $$SERVICE_RESULT = success ] || systemctl --no-block stop varve-two_at_a_time__50_.slice"
END

service varve-two_at_a_time__50_-a_b_4 "$here"/'logs of it/a_b_4-all.log' <<'END'
[Unit]
Description=a_b of two at a time, 50%%
After=varve-two_at_a_time__50_-loader.service

[Service]
Type=oneshot
Slice=varve-two_at_a_time__50_.slice
AllowedCPUs=2-3
NUMAPolicy=preferred
NUMAMask=0
TimeoutStopSec=2
Environment="OMP_NUM_THREADS=2"
ExecStartPre=-+/usr/bin/env systemctl --runtime set-property varve-two_at_a_time__50_-solver.service "AllowedMemoryNodes=2-3"
ExecStartPre=-+/usr/bin/env systemctl --runtime set-property varve-two_at_a_time__50_-a_b.service "AllowedMemoryNodes=2-3"
ExecStart=/usr/bin/env "varve" "jobs" "exercise" "ocean_cp:bytes=3GiB,threads=2,scale=512,seed=1"
ExecStopPost=+/bin/sh -c "[ $$SERVICE_RESULT = success ] || systemctl --no-block stop varve-two_at_a_time__50_.slice"
END

service varve-two_at_a_time__50_-a_b "$here"/'logs of it/a_b-all.log' <<'END'
[Unit]
Description=a b of two at a time, 50%%
After=varve-two_at_a_time__50_-solver.service

[Service]
Type=oneshot
Slice=varve-two_at_a_time__50_.slice
AllowedCPUs=0-1
NUMAPolicy=preferred
NUMAMask=0
TimeoutStopSec=2
Environment="OMP_NUM_THREADS=2"
ExecStart=/usr/bin/env "true"
ExecStopPost=+/bin/sh -c "[ $$SERVICE_RESULT = success ] || systemctl --no-block stop varve-two_at_a_time__50_.slice"
END

service varve-two_at_a_time__50_-pinned "$here"/'logs of it/pinned-all.log' <<'END'
[Unit]
Description=pinned of two at a time, 50%%
After=varve-two_at_a_time__50_-a_b.service

[Service]
Type=oneshot
Slice=varve-two_at_a_time__50_.slice
AllowedCPUs=0-1
NUMAPolicy=preferred
NUMAMask=2-3
TimeoutStopSec=2
Environment="OMP_NUM_THREADS=2"
ExecStart=/usr/bin/env "sh" "-c" "echo 2"
ExecStopPost=+/bin/sh -c "[ $$SERVICE_RESULT = success ] || systemctl --no-block stop varve-two_at_a_time__50_.slice"
END

cat >"$folder/varve-two_at_a_time__50_.target" <<'END'
[Unit]
Description=two at a time, 50%%
Wants=varve-two_at_a_time__50_-solver.service varve-two_at_a_time__50_-loader.service varve-two_at_a_time__50_-a_b_4.service varve-two_at_a_time__50_-a_b.service varve-two_at_a_time__50_-pinned.service
END

if [ $# -gt 0 ]; then
    echo "the units of varve-two_at_a_time__50_.target are in $folder"
    exit
fi
systemctl daemon-reload
# What moved away last time begins in fast memory again.
systemctl revert varve-two_at_a_time__50_-solver.service varve-two_at_a_time__50_-a_b.service
systemctl start varve-two_at_a_time__50_.target
! systemctl --quiet is-failed varve-two_at_a_time__50_-solver.service varve-two_at_a_time__50_-loader.service varve-two_at_a_time__50_-a_b_4.service varve-two_at_a_time__50_-a_b.service varve-two_at_a_time__50_-pinned.service
