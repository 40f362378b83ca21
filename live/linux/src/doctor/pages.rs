//! Memory: frames, page sizes, faults, nodes, persistence.

use super::{Check, Found, check, last_error, no, partly, yes};
use crate::arch::{self, WriteBack};
use crate::mapped::Mapped;
use crate::nodes::policy::{MisplacedPages, prefer};
use crate::nodes::sys::move_to;
use crate::nodes::{Kinds, NodeMemory, migrate};
use crate::place::bins::{HUGE, PAGE};
use crate::place::huge::frames;
use crate::place::mover::uffd_move_works;
use crate::place::pagemap::{Pagemap, frames_readable};
use crate::place::reserve::{Unit, populate};
use crate::place::scan;
use crate::probe::Topology;
use std::path::Path;

pub fn checks() -> Vec<Check> {
    let (topology, _) = Topology::read(Path::new("/"));
    vec![
        check(
            "frame numbers",
            "live placement under a DRAM cache",
            "run as root, or grant CAP_SYS_ADMIN",
            match frames_readable() {
                Ok(()) => yes("/proc/self/pagemap shows frame numbers"),
                Err(e) => no(e.to_string()),
            },
        ),
        check(
            "PAGEMAP_SCAN",
            "identifying huge pages; finding written pages",
            "Linux 6.7 or newer; /proc/kpageflags is used instead",
            if scan::works() {
                yes("the scan finds a page of ours")
            } else {
                no("the ioctl is refused")
            },
        ),
        check(
            "page moves",
            "live placement of many pages and of heaps",
            "Linux 6.8 or newer and the right to use userfaultfd; mremap is used instead",
            match uffd_move_works() {
                Ok(()) => yes("UFFDIO_MOVE works"),
                Err(e) => no(format!("UFFDIO_MOVE: {e}")),
            },
        ),
        check(
            "huge pages",
            "2 MiB placement",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or free memory for them",
            huge_pages(),
        ),
        check(
            "userfaultfd",
            "page moves; write protection of pages under migration",
            "run as root, or sysctl vm.unprivileged_userfaultfd=1",
            userfaultfd(),
        ),
        check(
            "memory nodes",
            "choosing between fast and slow memory",
            "a machine with several nodes, or a boot with numa=fake=2 to try",
            match topology.nodes.len() {
                0 => no("the kernel is built without NUMA support"),
                1 => partly("one node: nothing to choose between"),
                n => yes(format!(
                    "{n} nodes, {} without processors",
                    topology.nodes.iter().filter(|n| n.cpus.is_empty()).count()
                )),
            },
        ),
        check(
            "heap plans",
            "objects in fast and slow memory: varve run PROGRAM.wasm --plan NAME",
            "a node of memory alone, such as a CXL expander; or say which node is slow with --nodes",
            heap_plans(&topology),
        ),
        check(
            "mbind",
            "memory on a chosen node",
            "a kernel with CONFIG_NUMA, and a sandbox that allows mbind",
            mbind(),
        ),
        check(
            "move_pages",
            "moving single pages between nodes",
            "a kernel with CONFIG_NUMA and CONFIG_MIGRATION, and a sandbox that allows move_pages",
            move_pages(),
        ),
        check(
            "migrate_pages",
            "moving whole programs between nodes",
            "a kernel with CONFIG_NUMA and CONFIG_MIGRATION, and a sandbox that allows migrate_pages",
            migrate_pages(),
        ),
        check(
            "memory-side cache",
            "the size for --bins",
            "give the size of the DRAM cache yourself, such as --bins 48GiB",
            {
                let caches: Vec<String> = topology
                    .nodes
                    .iter()
                    .flat_map(|n| {
                        n.side_caches.iter().map(move |c| {
                            format!("node {}: {} MiB, {}", n.id, c.bytes >> 20, c.indexing)
                        })
                    })
                    .collect();
                if caches.is_empty() {
                    no("the firmware states none")
                } else {
                    yes(caches.join("; "))
                }
            },
        ),
        check(
            "persistent memory",
            "durable heaps without msync",
            "a DAX device or a file system mounted with -o dax; an ordinary file works, more slowly",
            persistent(&topology),
        ),
        check(
            "CXL memory",
            "a slow tier",
            "a CXL memory expander that the kernel knows",
            match topology.cxl.len() {
                0 => no("no CXL memory device"),
                n => yes(format!("{n} devices")),
            },
        ),
        check(
            "cache line flush",
            "durable stores",
            "a processor with CLWB or CLFLUSHOPT (x86-64), or DC CVAP (64-bit Arm)",
            flush(),
        ),
        check(
            "memfd",
            "shared and durable regions in tests",
            "Linux 3.17 or newer, and a sandbox that allows memfd_create",
            memfd(),
        ),
    ]
}

fn huge_pages() -> Found {
    let enabled =
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let mode = enabled
        .split(['[', ']'])
        .nth(1)
        .unwrap_or("missing")
        .to_owned();
    let Ok(pages) = Mapped::new(2 * HUGE) else {
        return no("no memory to try with");
    };
    let start = pages.start().next_multiple_of(HUGE);
    // SAFETY: an aligned part of our own anonymous mapping.
    if let Err(e) = unsafe { populate(start, HUGE, Unit::Huge) } {
        return no(format!("transparent huge pages are `{mode}`; {e}"));
    }
    match Pagemap::own().and_then(|map| frames(&map, start, 1)) {
        Ok(found) if found == [None] => no(format!(
            "transparent huge pages are `{mode}`, and a request got none"
        )),
        Ok(_) => yes(format!(
            "transparent huge pages are `{mode}`, and a request got one"
        )),
        Err(_) => partly(format!(
            "transparent huge pages are `{mode}`; whether a request gets one cannot be seen"
        )),
    }
}

fn userfaultfd() -> Found {
    #[repr(C)]
    struct Api {
        api: u64,
        features: u64,
        ioctls: u64,
    }
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) } as i32;
    if fd < 0 {
        return no(format!("userfaultfd: {}", last_error()));
    }
    let mut api = Api {
        api: 0xAA,
        features: 0,
        ioctls: 0,
    };
    let request = crate::place::sys::iowr::<Api>(0xAA, 0x3F);
    // SAFETY: UFFDIO_API reads and writes an `Api`; the descriptor is ours.
    let result = unsafe { libc::ioctl(fd, request, &mut api) };
    let error = last_error();
    // SAFETY: our descriptor, closed once.
    unsafe { libc::close(fd) };
    // UFFD_FEATURE_PAGEFAULT_FLAG_WP, linux/userfaultfd.h.
    match result {
        0 if api.features & 1 != 0 => yes("faults and write protection"),
        0 => partly("faults, without write protection"),
        _ => no(format!("UFFDIO_API: {error}")),
    }
}

fn heap_plans(topology: &Topology) -> Found {
    match Kinds::probe(topology) {
        Err(why) => no(why.to_string()),
        Ok(kinds) => match NodeMemory::new(kinds.clone()) {
            Ok(_) => yes(format!("{kinds}: a page of ours went to each node")),
            Err(e) => no(e.to_string()),
        },
    }
}

fn mbind() -> Found {
    let Ok(pages) = Mapped::new(PAGE) else {
        return no("no memory to try with");
    };
    match prefer(pages.start(), PAGE, &[0], MisplacedPages::Ignore) {
        Ok(()) => yes("a page of ours was bound to node 0"),
        Err(e) => no(e.to_string()),
    }
}

fn move_pages() -> Found {
    let touched = vec![1u8; 2 * PAGE];
    let (page, mut status) = ((touched.as_ptr() as usize).next_multiple_of(PAGE), [-1]);
    let moved = move_to(&[page], 0, &mut status);
    std::hint::black_box(touched);
    match moved {
        Ok(()) if status[0] >= 0 => yes(format!("a page of ours is on node {}", status[0])),
        Ok(()) => no(std::io::Error::from_raw_os_error(-status[0]).to_string()),
        Err(e) => no(e.to_string()),
    }
}

fn migrate_pages() -> Found {
    match migrate(0, &[0], &[0]) {
        Ok(_) => yes("from node 0 to node 0"),
        Err(e) => no(e.to_string()),
    }
}

fn persistent(topology: &Topology) -> Found {
    if let Some(device) = topology.dax.iter().find(|d| d.driver == "device_dax") {
        return yes(format!("device {}", device.name));
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let dax = mounts.lines().find(|l| {
        l.split(' ')
            .nth(3)
            .is_some_and(|o| o.split(',').any(|o| o.starts_with("dax")))
    });
    if let Some(place) = dax.and_then(|l| l.split(' ').nth(1)) {
        return yes(format!("file system at {place}"));
    }
    if std::fs::read_dir("/sys/bus/nd/devices").is_ok_and(|mut d| d.next().is_some()) {
        return partly("NVDIMM devices without DAX");
    }
    no("no DAX device, no DAX file system, no NVDIMM")
}

fn flush() -> Found {
    match arch::write_back() {
        WriteBack::Full(how) => yes(how),
        WriteBack::Partial(how) => partly(how),
        WriteBack::Missing(what) => no(what),
    }
}

fn memfd() -> Found {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"varve-doctor".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return no(last_error());
    }
    // SAFETY: our descriptor, closed once.
    unsafe { libc::close(fd) };
    yes("memfd_create works")
}
