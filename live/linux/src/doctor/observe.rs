//! Watching accesses: counters, sampling, DAMON, idle pages, tracing.

use super::{Available, Check, Found, check, last_error, no, partly, yes};
use crate::perf::{Attributes, open};
use crate::sampled;
use std::io::Read;
use std::path::Path;

pub fn checks() -> Vec<Check> {
    let damon = damon();
    let damon_remedy = match damon.0 {
        Available::Partly => "end that program, or wait for it",
        _ => "a kernel with CONFIG_DAMON_SYSFS, and root",
    };
    let pmu_remedy = "a machine or virtual machine with a PMU, and sysctl kernel.perf_event_paranoid=1 or root; protection faults are used instead";
    vec![
        check(
            "hardware counters",
            "counting cache misses",
            pmu_remedy,
            counter(),
        ),
        check(
            "memory sampling",
            "misses by allocation site (PEBS on Intel, IBS on AMD)",
            pmu_remedy,
            sampling(),
        ),
        check(
            "DAMON",
            "finding hot pages without a PMU",
            damon_remedy,
            damon,
        ),
        check(
            "idle page tracking",
            "finding pages that are not used",
            "a kernel with CONFIG_IDLE_PAGE_TRACKING, and root",
            match std::fs::File::open("/sys/kernel/mm/page_idle/bitmap")
                .and_then(|mut f| f.read_exact(&mut [0; 8]))
            {
                Ok(()) => yes("/sys/kernel/mm/page_idle/bitmap can be read"),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    no("the kernel does not have it")
                }
                Err(e) => no(e.to_string()),
            },
        ),
        check(
            "soft-dirty bits",
            "finding written pages on kernels without PAGEMAP_SCAN",
            "a kernel with CONFIG_MEM_SOFT_DIRTY",
            soft_dirty(),
        ),
        check(
            "ptrace",
            "reading the page maps of other programs",
            "sysctl kernel.yama.ptrace_scope=0 or 1, or root",
            ptrace(),
        ),
    ]
}

const HARDWARE: u32 = 0; // PERF_TYPE_HARDWARE
const CYCLES: u64 = 0; // PERF_COUNT_HW_CPU_CYCLES

/// Opens an event on this process, in user mode.
fn open_event(kind: u32, config: u64, period: u64) -> Result<(), std::io::Error> {
    let disabled = 1;
    let attributes = Attributes {
        period,
        // PERF_SAMPLE_IP | PERF_SAMPLE_ADDR
        sample_type: if period > 0 { 1 | 8 } else { 0 },
        flags: disabled | Attributes::EXCLUDE_KERNEL | Attributes::EXCLUDE_HYPERVISOR,
        ..Attributes::of(kind, [config, 0, 0])
    };
    open(attributes, 0, -1, -1).map(drop)
}

fn counter() -> Found {
    match open_event(HARDWARE, CYCLES, 0) {
        Ok(()) => yes("a cycle counter was opened"),
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => {
            no("no PMU: the processor or virtual machine has none to offer")
        }
        Err(e) => no(format!("perf_event_open: {e}")),
    }
}

fn sampling() -> Found {
    let why = match sampled::hardware() {
        Ok(events) => {
            let names: Vec<&str> = events.iter().map(|event| &*event.name).collect();
            return yes(format!("{} can be opened", names.join(", ")));
        }
        Err(why) => why,
    };
    let spe = std::fs::read_to_string("/sys/bus/event_source/devices/arm_spe_0/type");
    match spe.ok().and_then(|kind| kind.trim().parse().ok()) {
        Some(kind) => match open_event(kind, 0, 100_000) {
            Ok(()) => partly("SPE can be opened; `varve profile --live` does not read it"),
            Err(e) => no(format!("SPE: {e}")),
        },
        None => no(why),
    }
}

fn damon() -> Found {
    let dir = Path::new("/sys/kernel/mm/damon/admin/kdamonds");
    let count = dir.join("nr_kdamonds");
    match std::fs::read_to_string(&count) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if Path::new("/sys/kernel/mm/damon").exists() {
                no("the kernel has DAMON, but not its sysfs interface")
            } else {
                no("the kernel does not have it")
            }
        }
        Err(e) => no(e.to_string()),
        Ok(now) => {
            // Writing the number that is already there changes nothing when it is zero; otherwise another process uses it.
            if now.trim() != "0" {
                return partly(format!("another program has its monitors ({})", now.trim()));
            }
            match std::fs::write(&count, "0") {
                Ok(()) => yes("its sysfs interface takes orders"),
                Err(e) => no(e.to_string()),
            }
        }
    }
}

fn soft_dirty() -> Found {
    let mut page = vec![0u8; 3 * 4096];
    page.fill(1);
    let at = (page.as_ptr() as usize).next_multiple_of(4096);
    // Bit 55 of a page map entry: written since the bits were last cleared (and set on fresh pages).
    let mut dirty = false;
    let read = crate::place::pagemap::Pagemap::own()
        .and_then(|map| map.read(at, 1, |_, entry| dirty = entry.0 & (1 << 55) != 0));
    std::hint::black_box(&page);
    match read {
        Ok(()) if dirty => yes("a page of ours shows as written"),
        Ok(()) => no("a page that was written does not show it"),
        Err(e) => no(e.to_string()),
    }
}

fn ptrace() -> Found {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.map_or("no ptrace_scope".into(), |s| {
        format!("ptrace_scope {}", s.trim())
    });
    // Reading the page map needs the same right as tracing; try it on a child, then on a stranger.
    let Ok(mut child) = std::process::Command::new("sleep").arg("5").spawn() else {
        return no(format!(
            "{scope}; no child could be started to try with: {}",
            last_error()
        ));
    };
    let own_child = std::fs::File::open(format!("/proc/{}/pagemap", child.id())).is_ok();
    // SAFETY: plain arguments; attaches to our own child, which is killed below.
    let attached =
        unsafe { libc::ptrace(libc::PTRACE_SEIZE, child.id() as libc::pid_t, 0, 0) } == 0;
    let _ = child.kill();
    let _ = child.wait();
    let stranger = std::fs::File::open("/proc/1/pagemap").is_ok();
    match (own_child && attached, stranger) {
        (true, true) => yes(format!("any program; {scope}")),
        (true, false) => partly(format!("own children; {scope}")),
        (false, _) => no(format!("not even own children; {scope}")),
    }
}
