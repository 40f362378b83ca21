//! Unmodified programs whose objects are placed by allocation site. On a machine with memory of two kinds (the guest of
//! `tests/guest`) the kernel is asked where pages are; elsewhere both tiers are node 0, and the shim's counts are checked.
#![cfg(target_arch = "x86_64")]

#[path = "common/compiled.rs"]
mod compiled;

use compiled::Program;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use varve_live::nodes::Kinds;
use varve_live::objects::{
    FrameRef, Group, GroupReport, Lived, ObjectOptions, ObjectReport, Running, Site, SiteMap, Tier,
    Variable, run,
};
use varve_live::probe::Topology;

fn start(program: &Program, map: &SiteMap, arguments: &[&str]) -> ObjectReport {
    let arguments = arguments.iter().map(OsString::from);
    let command: Vec<OsString> = std::iter::once(program.path.clone().into())
        .chain(arguments)
        .collect();
    run(&command, map, &ObjectOptions::default()).unwrap()
}

/// The nodes of this machine; node 0 twice if its memory is all alike.
fn kinds() -> (Kinds, bool) {
    match Kinds::probe(&Topology::read(Path::new("/")).0) {
        Ok(kinds) => (kinds, true),
        Err(why) => {
            eprintln!("both tiers are node 0: {why}");
            (
                Kinds {
                    fast: vec![0],
                    slow: vec![0],
                },
                false,
            )
        }
    }
}

const MIB: u64 = 1 << 20;

/// The sites of `objects.c`, in this order.
const SITES: [(&str, &str); 11] = [
    ("hot", "malloc"),
    ("cold", "calloc"),
    ("wrapped_hot", "xmalloc"),
    ("wrapped_cold", "xmalloc"),
    ("aligned_hot", "posix_memalign"),
    ("grow_hot", "realloc"),
    ("mapped_cold", "mmap"),
    ("mapped_hot", "mmap"),
    ("zeroed_hot", "calloc"),
    ("vast_hot", "aligned_alloc"),
    ("grow_cold", "realloc"),
];

fn sites(program: &Program) -> SiteMap {
    let site = |(rank, &(function, callee)): (usize, &(&str, &str))| {
        let frame = program.frame(function, callee);
        let stack = match callee {
            "xmalloc" => vec![program.frame("xmalloc", "malloc"), frame],
            _ => vec![frame],
        };
        let tier = if function.ends_with("cold") {
            Tier::Slow
        } else {
            Tier::Fast
        };
        Site {
            stack,
            tier,
            promised_bytes: 0,
            rank: rank as u32,
        }
    };
    SiteMap {
        sites: SITES.iter().enumerate().map(site).collect(),
        variables: Vec::new(),
        default_tier: None,
        budget_bytes: 256 * MIB,
        kinds: kinds().0,
    }
}

/// A process's counts for a site, by the position in [`SITES`].
fn of_site(report: &ObjectReport, process: usize, function: &str) -> GroupReport {
    let site = SITES.iter().position(|s| s.0 == function).unwrap();
    let group = report
        .groups
        .iter()
        .position(|g| *g == Group::Sites(vec![site]));
    report.ran.processes[process].group(group.expect("a group of its own"))
}

/// All went well, and the checked pages are where they belong.
fn check(report: &ObjectReport, map: &SiteMap) {
    assert!(report.ran.status.success(), "{report:#?}");
    assert_eq!(report.ran.notes, Vec::<String>::new());
    for process in &report.ran.processes {
        assert_eq!(process.pages_elsewhere(&map.kinds).1, 0, "{process:#?}");
    }
    for (number, lived) in report.lived.iter().enumerate() {
        let own = report.ran.processes.iter().map(|p| p.group(number));
        let (objects, bytes) = own.fold((0, 0), |sum, g| (sum.0 + g.objects, sum.1 + g.bytes));
        // A process that became another program reports what it did since.
        assert!(lived.objects >= objects, "{number}: {report:#?}");
        assert!(lived.bytes >= bytes, "{number}: {report:#?}");
        assert!(lived.fast_at_top <= lived.fast_most, "{report:#?}");
        assert!(lived.slow_at_top <= lived.slow_most, "{report:#?}");
        assert!(lived.fast_most <= report.all.fast_most, "{report:#?}");
        assert!(lived.slow_most <= report.all.slow_most, "{report:#?}");
        assert!(
            lived.fast_most + lived.slow_most <= lived.bytes,
            "{report:#?}"
        );
    }
    let all = &report.all;
    assert!(all.fast_at_top + all.slow_at_top <= all.fast_most + all.slow_most);
    assert_eq!(all.objects > 0, all.fast_at_top + all.slow_at_top > 0);
}

/// What a site had while the program ran.
fn lived<'a>(report: &'a ObjectReport, function: &str) -> &'a Lived {
    let site = SITES.iter().position(|s| s.0 == function).unwrap();
    let groups = &report.groups;
    let group = groups.iter().position(|g| *g == Group::Sites(vec![site]));
    &report.lived[group.expect("a group of its own")]
}

#[test]
fn objects_are_in_the_memory_of_their_site_to_the_end() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    let report = start(&program, &map, &["keep", "500"]);
    check(&report, &map);
    if let Some(places) = &report.places {
        assert_eq!(places.elsewhere(&map.kinds), 0, "{places:?}");
    }
    for function in ["hot", "wrapped_hot", "aligned_hot"] {
        let group = of_site(&report, 0, function);
        assert_eq!(
            (group.objects, group.slow, group.spilled),
            (500, 0, 0),
            "{function}: {group:?}"
        );
        assert!(group.fast >= 500_000, "{function}: {group:?}");
        assert!(
            !group.fast_pages.is_empty() && group.slow_pages.is_empty(),
            "{function}: {group:?}"
        );
    }
    for (function, objects, bytes) in [
        ("cold", 500, 500_000),
        ("wrapped_cold", 500, 500_000),
        ("mapped_cold", 1, 1 << 20),
    ] {
        let group = of_site(&report, 0, function);
        assert_eq!(
            (group.objects, group.fast),
            (objects, 0),
            "{function}: {group:?}"
        );
        assert!(group.slow >= bytes, "{function}: {group:?}");
    }
    assert!(report.ran.processes[0].fast_bytes >= 1_500_000);
    assert!(report.ran.processes[0].fast_resident >= report.ran.processes[0].fast_bytes);
}

#[test]
fn threads_forks_and_reallocations_leave_every_block_as_it_was() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    let report = start(&program, &map, &["stress", "4"]);
    check(&report, &map);
    assert_eq!(
        report.ran.processes.len(),
        4,
        "three children and their parent"
    );
    let parent = &report.ran.processes[3];
    for group in &parent.groups {
        assert!(group.objects > 1000, "{group:?}");
        assert_eq!((group.fast, group.slow), (0, 0), "all was freed: {group:?}");
    }
    assert_eq!(parent.fast_bytes, 0);
    // What was so while it ran is known all the same.
    for group in &parent.groups {
        let lived = &report.lived[group.group];
        assert!(lived.fast_most + lived.slow_most > 100_000, "{lived:?}");
    }
}

#[test]
fn what_no_site_decides_goes_where_the_map_says() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = SiteMap {
        default_tier: Some(Tier::Slow),
        ..sites(&program)
    };
    let report = start(&program, &map, &["keep", "300"]);
    check(&report, &map);
    let undecided = report
        .groups
        .iter()
        .position(|g| *g == Group::Undecided)
        .unwrap();
    let group = report.ran.processes[0].group(undecided);
    assert!(
        group.objects >= 300 && group.slow >= 300_000 && group.fast == 0,
        "{group:?}"
    );
    let report = start(&program, &map, &["stress", "3"]);
    check(&report, &map);
}

/// `hot` may take 4 of 6 MiB; what is promised to `wrapped_hot` is kept for it.
#[test]
fn the_least_worthy_spill_first_and_come_back_when_there_is_room() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let mut map = sites(&program);
    map.budget_bytes = 6 * MIB;
    map.sites[2].rank = 0;
    map.sites[2].promised_bytes = 2 * MIB;
    map.sites[0].rank = 1;
    let report = start(&program, &map, &["spill", "80"]);
    check(&report, &map);
    let (worthy, less) = (
        of_site(&report, 0, "wrapped_hot"),
        of_site(&report, 0, "hot"),
    );
    // 80 blocks of 64 KiB are 5 MiB: 4 fit, or almost, since blocks are rounded up.
    assert!(less.spilled >= MIB && less.spilled <= 2 * MIB, "{less:?}");
    let refused = lived(&report, "hot").refused;
    assert!((16..=32).contains(&refused), "{refused}");
    assert_eq!(lived(&report, "cold").refused, 0);
    // Then half of the first 5 MiB are given back, of fast and slow memory alike; the worthier has the room.
    assert!(worthy.fast as u64 > 3 * MIB, "{worthy:?}");
    assert!(
        report.ran.processes[0].fast_bytes <= 6 * MIB + (64 << 10),
        "{report:?}"
    );
}

/// 8 MiB are mapped, and the budget is 4 MiB: what is fast, slow, and was spilled in the end.
#[test]
fn a_mapping_takes_what_is_left_and_gives_back_what_goes() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let mut map = sites(&program);
    map.budget_bytes = 4 * MIB;
    for (number, what, objects, fast, slow, spilled) in [
        ("0", "the first half is fast", 1, 4, 4, 4),
        ("1", "a hole in each half, and another mapping", 2, 4, 4, 5),
        ("2", "it grows at its slow end, and moves", 1, 4, 12, 12),
        ("3", "it shrinks, and grows at its fast end", 1, 4, 2, 6),
        ("4", "it moves, and goes", 1, 0, 0, 4),
        ("5", "2 MiB of it are mapped anew by nobody", 1, 2, 4, 4),
    ] {
        let report = start(&program, &map, &["map", number]);
        check(&report, &map);
        let group = of_site(&report, 0, "mapped_hot");
        let mib = |bytes: i64| bytes / MIB as i64;
        assert_eq!(
            (
                group.objects,
                mib(group.fast),
                mib(group.slow),
                group.spilled / MIB
            ),
            (objects, fast, slow, spilled),
            "{number}: {what}: {group:?}"
        );
        assert_eq!(group.fast > 0, !group.fast_pages.is_empty(), "{group:?}");
        assert_eq!(group.slow > 0, !group.slow_pages.is_empty(), "{group:?}");
        assert_eq!(report.ran.processes[0].fast_bytes, group.fast as u64);
        // Whatever is left in the end: all 4 MiB were fast once, and each mapping found too little room.
        let lived = lived(&report, "mapped_hot");
        assert_eq!(lived.fast_most, 4 * MIB, "{number}: {lived:?}");
        assert!(
            lived.slow_most as i64 >= group.slow.max(4 * MIB as i64),
            "{number}: {lived:?}"
        );
        assert!(lived.refused >= objects, "{number}: {lived:?}");
    }
}

/// Objects of 8 MiB are made, and the budget is 4 MiB: what is fast, slow, and was spilled in the end.
#[test]
fn a_large_object_takes_what_is_left_and_gives_back_what_goes() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let mut map = sites(&program);
    map.budget_bytes = 4 * MIB;
    for (command, function) in [
        ("large", "hot"),
        ("zeroed", "zeroed_hot"),
        ("vast", "vast_hot"),
    ] {
        for (number, what, objects, fast, slow, spilled) in [
            ("0", "the first half is fast", 1, 4, 4, 4),
            ("1", "it shrinks to what is fast at most", 2, 2, 0, 4),
            (
                "2",
                "it grows, and half of what it has is fast no longer",
                2,
                4,
                12,
                16,
            ),
            ("3", "another comes in its place", 2, 4, 4, 8),
            ("4", "a child frees it, and its parent does not", 1, 4, 4, 4),
            ("5", "it goes", 1, 0, 0, 4),
            ("6", "it becomes another site's", 1, 0, 0, 4),
            ("7", "it cannot grow", 1, 4, 4, 4),
        ] {
            // Guests are slow: of objects that are zeroed, what differs.
            if command == "zeroed" && !["0", "3"].contains(&number) {
                continue;
            }
            let report = start(&program, &map, &[command, number]);
            check(&report, &map);
            let last = report.ran.processes.len() - 1;
            let group = of_site(&report, last, function);
            let mib = |bytes: i64| bytes / MIB as i64;
            // A block is somewhat larger than its object.
            assert_eq!(
                (
                    group.objects,
                    mib(group.fast),
                    mib(group.slow),
                    group.spilled / MIB
                ),
                (objects, fast, slow, spilled),
                "{command} {number}: {what}: {group:?}"
            );
            assert_eq!(group.fast > 0, !group.fast_pages.is_empty(), "{group:?}");
            assert_eq!(
                group.slow >= MIB as i64,
                !group.slow_pages.is_empty(),
                "{group:?}"
            );
            let process = &report.ran.processes[last];
            assert_eq!(process.fast_bytes, group.fast as u64, "{command} {number}");
            if command != "vast" {
                assert!(process.fast_resident >= process.fast_bytes, "{process:?}");
            }
            let cold = of_site(&report, last, "grow_cold");
            assert_eq!(mib(cold.slow), if number == "6" { 9 } else { 0 });
        }
    }
}

/// The same as [`threads_forks_and_reallocations_leave_every_block_as_it_was`], with fast memory for a few of the blocks.
#[test]
fn large_objects_of_which_a_part_is_fast_stand_the_same_stress() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let mut map = sites(&program);
    map.budget_bytes = 3 * MIB;
    let report = start(&program, &map, &["stress", "4"]);
    check(&report, &map);
    let parent = &report.ran.processes[3];
    for group in &parent.groups {
        assert_eq!((group.fast, group.slow), (0, 0), "all was freed: {group:?}");
    }
    assert_eq!((parent.fast_bytes, parent.fast_resident > 0), (0, true));
}

/// Objects that grow stay in the memory of the site that made them, where no other site makes them grow.
#[test]
fn objects_that_grow_stay_in_the_memory_of_their_site() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    let report = start(&program, &map, &["grow", "4"]);
    check(&report, &map);
    let (hot, cold) = (of_site(&report, 0, "hot"), of_site(&report, 0, "cold"));
    assert!(hot.fast >= 4 * MIB as i64 && hot.slow == 0, "{hot:?}");
    assert!(cold.slow >= 4 * MIB as i64 && cold.fast == 0, "{cold:?}");
    assert!(!hot.fast_pages.is_empty() && !cold.slow_pages.is_empty());
}

static SERVED: OnceLock<PathBuf> = OnceLock::new();
static SEEN: OnceLock<Running> = OnceLock::new();

/// SIGUSR1 asks for what is so by now. The answer is read while the program runs; then it may end.
#[test]
fn a_service_is_asked_while_it_runs() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    let folder = tempfile::tempdir().unwrap();
    let file = SERVED.get_or_init(|| folder.path().join("runs"));
    std::fs::write(file, "").unwrap();
    let options = ObjectOptions {
        on_request: Some(|running| {
            let served = SERVED.get().unwrap();
            if served.exists() {
                _ = SEEN.set(running.clone());
                std::fs::remove_file(served).unwrap();
            }
        }),
        ..ObjectOptions::default()
    };
    let command: Vec<OsString> = vec![
        program.path.clone().into(),
        "serve".into(),
        file.clone().into(),
    ];
    let report = std::thread::scope(|scope| {
        let run = scope.spawn(|| run(&command, &map, &options).unwrap());
        let ready = file.with_extension("ready");
        while !ready.exists() && !run.is_finished() {
            std::thread::yield_now();
        }
        // SAFETY: a signal to this very process, whose handler was there before the program began.
        unsafe { libc::raise(libc::SIGUSR1) };
        run.join().unwrap()
    });
    check(&report, &map);
    let seen = SEEN.get().expect("it was asked");
    assert_eq!(seen.budget_bytes, map.budget_bytes);
    let one = seen
        .processes
        .iter()
        .find(|p| p.program == "objects")
        .unwrap();
    assert!(one.fast_bytes >= 2 * MIB, "{seen:?}");
    assert!(one.on_fast_nodes >= 2 * MIB, "{seen:?}");
}

#[test]
fn children_share_the_budget_and_report_for_themselves() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    let report = start(&program, &map, &["fork"]);
    check(&report, &map);
    let [child, parent] = [0, 1].map(|p| (of_site(&report, p, "hot"), of_site(&report, p, "cold")));
    assert_eq!(
        (child.0.objects, parent.0.objects),
        (0, 1),
        "made before the fork"
    );
    assert_eq!((child.1.objects, parent.1.objects), (1, 1));
    assert!(
        child.0.fast >= 1 << 20 && child.1.slow >= 1 << 20,
        "{child:?}"
    );
}

#[test]
fn a_program_that_becomes_another_is_placed_again() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    let report = start(&program, &map, &["exec", "100"]);
    check(&report, &map);
    assert_eq!(report.ran.processes.len(), 1);
    assert_eq!(of_site(&report, 0, "cold").objects, 100);
}

#[test]
fn static_variables_are_moved_at_the_start() {
    let Some(program) = Program::new("objects", &["-no-pie"]) else {
        return;
    };
    let listed = Command::new("nm").arg(&program.path).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = listed.lines().find(|l| l.ends_with(" table")).unwrap();
    let mut map = sites(&program);
    let FrameRef {
        module, build_id, ..
    } = program.frame("hot", "malloc");
    let address = u64::from_str_radix(&line[..16], 16).unwrap();
    map.variables = vec![
        Variable {
            module: module.clone(),
            build_id: build_id.clone(),
            address,
            bytes: 64 << 12,
            tier: Tier::Slow,
        },
        Variable {
            module,
            build_id,
            address: address + 8,
            bytes: 16,
            tier: Tier::Fast,
        },
    ];
    let report = start(&program, &map, &["keep", "10"]);
    check(&report, &map);
    let process = &report.ran.processes[0];
    assert_eq!(
        (
            process.variables_slow,
            process.variables_fast,
            process.variables_left
        ),
        (64 << 12, 0, 16)
    );
}

#[test]
fn libraries_that_come_later_are_placed_and_other_builds_are_not() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let Some(plugin) = Program::new("plugin", &["-shared", "-fPIC"]) else {
        return;
    };
    let mut map = sites(&program);
    let stack = vec![plugin.frame("plugin_make", "malloc")];
    map.sites = vec![Site {
        stack,
        tier: Tier::Slow,
        promised_bytes: 0,
        rank: 0,
    }];
    let path = plugin.path.to_str().unwrap();
    let report = start(&program, &map, &["load", path]);
    check(&report, &map);
    // New modules are searched after 64 calls from unknown addresses.
    assert!(
        (900..=1000).contains(&report.ran.processes[0].group(0).objects),
        "{report:?}"
    );

    map.sites[0].stack[0].build_id = "00ff".into();
    let report = start(&program, &map, &["load", path]);
    assert!(report.ran.status.success());
    assert_eq!(report.ran.processes[0].group(0).objects, 0);
    assert_eq!(report.ran.processes[0].other_build, ["plugin"]);
    assert!(
        report.ran.notes[0].contains("plugin is another build"),
        "{:?}",
        report.ran.notes
    );
}

#[test]
fn corners_of_the_c_library_are_as_they_were() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let mut map = sites(&program);
    for default_tier in [None, Some(Tier::Fast), Some(Tier::Slow)] {
        map.default_tier = default_tier;
        let report = start(&program, &map, &["corners"]);
        assert_eq!(
            report.ran.status.code(),
            Some(0),
            "{default_tier:?}: {report:#?}"
        );
    }
}

#[test]
fn a_program_whose_addresses_are_limited_runs_and_is_told_of() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    let script = format!("ulimit -v 8000000 && {} stress 4", program.path.display());
    let command = ["sh", "-c", &script].map(OsString::from);
    let report = run(&command, &map, &ObjectOptions::default()).unwrap();
    assert!(report.ran.status.success(), "{report:?}");
    let told = |n: &String| n.starts_with("objects ") && n.contains("ulimit -v");
    assert!(report.ran.notes.iter().any(told), "{:?}", report.ran.notes);
}

#[test]
fn programs_that_bring_their_own_allocator_are_refused() {
    let Some(program) = Program::new("objects", &[]) else {
        return;
    };
    let map = sites(&program);
    for (flags, words) in [
        (&["-fsanitize=address"][..], "AddressSanitizer"),
        (&["-static"], "statically"),
    ] {
        let Some(other) = Program::new("objects", flags) else {
            continue;
        };
        let command = [other.path.clone().into()];
        let why = run(&command, &map, &ObjectOptions::default())
            .unwrap_err()
            .to_string();
        assert!(why.contains(words) && !why.contains('\n'), "{why}");
    }
}

#[test]
fn a_program_may_ask_by_name_and_runs_without_us_too() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/objects/include");
    for flags in [
        &[include][..],
        &[include, "-no-pie"],
        &[include, "-xc++", "-std=c++17", "-fpermissive"],
    ] {
        let Some(program) = Program::new("asked", flags) else {
            continue;
        };
        assert!(Command::new(&program.path).status().unwrap().success());
        let map = SiteMap {
            sites: Vec::new(),
            variables: Vec::new(),
            default_tier: None,
            budget_bytes: MIB,
            kinds: kinds().0,
        };
        let report = start(&program, &map, &[]);
        check(&report, &map);
        for (tier, made) in [(Tier::Fast, 100), (Tier::Slow, 200)] {
            let asked = report
                .groups
                .iter()
                .position(|g| *g == Group::Asked(tier))
                .unwrap();
            let group = report.ran.processes[0].group(asked);
            let (here, there) = match tier {
                Tier::Fast => (group.fast, group.slow),
                Tier::Slow => (group.slow, group.fast),
            };
            assert_eq!((group.objects, there), (made, 0), "{flags:?}: {group:?}");
            assert!(here >= 50 * 10_000, "{flags:?}: {group:?}");
        }
    }
}

/// Programs of others: as without the shim, with everything that they allocate in a tier.
#[test]
fn sqlite_and_python_say_the_same_as_without() {
    let (kinds, _) = kinds();
    let sql = "create table a(x integer primary key, y text); create table b(x, z);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
            insert into a select i, 'text ' || (i * 7919 % 1000) from n;
        insert into b select x % 100, y from a; create index i on b(z);
        select count(*), sum(a.x), max(b.z) from a join b on a.y = b.z where a.x % 50 = 1;
        select y, count(*) from a group by y order by 2 desc, 1 limit 5;";
    let python = "import threading, gc, hashlib
words = [str(i) * (i % 50) for i in range(20000)]
def work(n):
    d = {w + str(n): [w] for w in words[n::4]}; d['self'] = d
    del d; gc.collect()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(hashlib.sha256(''.join(sorted(words)).encode()).hexdigest())";
    for command in [["sqlite3", ":memory:", sql], ["python3", "-c", python]] {
        let Ok(plain) = Command::new(command[0]).args(&command[1..]).output() else {
            varve_skip::skip!("no {}", command[0]);
            continue;
        };
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        // The run's output is the caller's: a shell puts it into a file.
        let script = "out=$1; shift; exec \"$@\" >\"$out\"";
        let words = ["sh", "-c", script, "sh"].map(OsString::from).into_iter();
        let words = words
            .chain([out.clone().into()])
            .chain(command.map(OsString::from));
        let map = SiteMap {
            sites: Vec::new(),
            variables: Vec::new(),
            default_tier: Some(Tier::Slow),
            budget_bytes: 0,
            kinds: kinds.clone(),
        };
        // The guest's slow node is smaller than what Python needs: what spills over to other nodes is said in notes.
        let report = run(&words.collect::<Vec<_>>(), &map, &ObjectOptions::default()).unwrap();
        assert!(report.ran.status.success(), "{report:?}");
        assert_eq!(std::fs::read(&out).unwrap(), plain.stdout, "{}", command[0]);
        let last = report.ran.processes.last().unwrap();
        let group = last.group(0);
        assert!(group.objects > 5_000 && group.fast == 0, "{last:?}");
    }
}
