//! Unmodified programs with their pages placed, judged from outside by the kernel's own page maps.

mod common;

use common::{CACHE_BYTES, allowed, options, program};
use std::ffi::OsString;
use varve_live::{LiveOptions, LiveReport, PageSize, run};

fn command(program: &std::path::Path, arguments: &[&str]) -> Vec<OsString> {
    std::iter::once(program.into())
        .chain(arguments.iter().map(OsString::from))
        .collect()
}

/// Conflicts of the run, with the counts that a failing test should show.
fn after(report: &LiveReport) -> varve_live::Conflicts {
    report
        .ran
        .processes
        .first()
        .unwrap_or_else(|| panic!("no report: {report:?}"))
        .after
}

#[test]
fn an_array_as_large_as_the_cache_gets_a_bin_for_nearly_every_page() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(array) = program("array", dir.path()) else {
        return;
    };
    for pages in [PageSize::Base, PageSize::Huge] {
        let options = LiveOptions {
            pages,
            ..options(dir.path())
        };
        let report = run(&command(&array, &["60"]), &options).unwrap();
        assert!(report.ran.status.success(), "{report:?}");

        let placed = after(&report);
        assert!(placed.pages >= 60 * 256, "{placed:?}");
        // Random frames would leave 5 thousand pages too many; placing leaves a tenth of that at most.
        assert!(
            (placed.excess as f64) < placed.random_excess / 10.0,
            "{pages:?}: {placed:?}"
        );

        // From outside, with all other large memory of the process.
        let seen = report
            .seen
            .unwrap_or_else(|| panic!("no process was sampled: {report:?}"));
        assert!(seen.pages >= placed.pages, "{seen:?}");
        let most = placed.excess + report.seen_unplaced;
        assert!(
            seen.excess <= most,
            "{pages:?}: seen {seen:?}, placed {placed:?}"
        );
    }
}

#[test]
fn an_array_of_three_caches_fills_every_bin_alike() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(array) = program("array", dir.path()) else {
        return;
    };
    let report = run(&command(&array, &["192"]), &options(dir.path())).unwrap();
    let placed = after(&report);
    assert!(placed.fullest <= 4, "{placed:?}");
    assert!(
        placed.bins_used >= CACHE_BYTES / 4096 * 999 / 1000,
        "{placed:?}"
    );
}

#[test]
fn two_programs_at_once_keep_out_of_each_others_bins() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(array) = program("array", dir.path()) else {
        return;
    };
    // Both hold their arrays until both are ready and the watcher has had the time to sample them:
    // their inputs end together.
    let script = format!(
        "cd {0} && mkfifo go && touch out1 out2
         {1} 24 wait <go >out1 & {1} 24 wait <go >out2 & exec 3>go
         until grep -q ready out1 && grep -q ready out2; do sleep 0.02; done; sleep 2; exec 3>&-; wait",
        dir.path().display(),
        array.display()
    );
    let report = run(
        &["sh".into(), "-c".into(), script.into()],
        &options(dir.path()),
    )
    .unwrap();
    assert_eq!(report.ran.processes.len(), 2, "{report:?}");
    let seen = report
        .seen
        .unwrap_or_else(|| panic!("no process was sampled: {report:?}"));
    assert!(seen.pages >= 2 * 24 * 256, "{seen:?}");
    assert!((seen.excess as f64) < seen.random_excess / 4.0, "{seen:?}");
}

#[test]
fn counting_alone_moves_nothing() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(array) = program("array", dir.path()) else {
        return;
    };
    let options = LiveOptions {
        count_only: true,
        heap: false,
        ..options(dir.path())
    };
    let report = run(&command(&array, &["32"]), &options).unwrap();
    let process = &report.ran.processes[0];
    assert_eq!((process.moved_pages, process.before), (0, process.after));
    assert!(process.placed_pages >= 32 * 256);
}

#[test]
fn a_program_that_does_everything_with_its_memory_notices_nothing() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(drop_in) = program("drop_in", dir.path()) else {
        return;
    };
    for (pages, heap) in [
        (PageSize::Base, true),
        (PageSize::Base, false),
        (PageSize::Huge, true),
    ] {
        let options = LiveOptions {
            pages,
            heap,
            threshold_bytes: 256 << 10,
            ..options(dir.path())
        };
        let report = run(&command(&drop_in, &[]), &options).unwrap();
        assert!(
            report.ran.status.success(),
            "{pages:?} heap {heap}: {report:?}"
        );
        let failures: u64 = report.ran.processes.iter().map(|p| p.left_failed).sum();
        assert_eq!(failures, 0, "{report:?}");
    }
}

#[test]
fn a_program_that_asks_for_far_more_than_it_uses_stays_small() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(sparse) = program("sparse", dir.path()) else {
        return;
    };
    let report = run(&command(&sparse, &[]), &options(dir.path())).unwrap();
    let process = &report.ran.processes[0];
    // Without page moves (Linux before 6.8) all of it is placed at once.
    if process.placed_pages < (1 << 30) / 4096 {
        assert!(report.ran.status.success(), "{report:?}");
        assert!(process.placed_pages >= 5 * 25, "{process:?}");
    }
}

/// Is there a load table in the directory?
fn has_table(dir: &std::path::Path) -> bool {
    let names = std::fs::read_dir(dir).unwrap().flatten();
    let mut names = names.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with("varve-bins-"))
}

#[test]
fn the_last_run_leaves_no_load_table() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(array) = program("array", dir.path()) else {
        return;
    };
    let report = run(&command(&array, &["24"]), &options(dir.path())).unwrap();
    assert!(after(&report).pages >= 24 * 256, "{report:?}");
    assert!(!has_table(dir.path()));
}

#[test]
fn a_killed_program_leaves_no_load_behind() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(array) = program("array", dir.path()) else {
        return;
    };
    let script = format!(
        "cd {0} && mkfifo go && touch out
         {1} 40 wait <go >out & exec 3>go
         until grep -q ready out; do sleep 0.02; done; sleep 1; kill -9 $!; wait",
        dir.path().display(),
        array.display()
    );
    let report = run(
        &["sh".into(), "-c".into(), script.into()],
        &options(dir.path()),
    )
    .unwrap();
    assert!(report.ran.processes.is_empty(), "{report:?}");
    assert!(
        report.seen.is_some_and(|s| s.pages >= 40 * 256),
        "{report:?}"
    );
    assert!(
        report.ran.notes.iter().any(|n| n.contains("no report")),
        "{report:?}"
    );
    assert!(!has_table(dir.path()), "it was the last program");
    // The next run finds an empty table: its own pages alone fit without a conflict.
    let report = run(&command(&array, &["24"]), &options(dir.path())).unwrap();
    assert!(after(&report).excess < 24, "{report:?}");
}

#[test]
fn a_mapping_beyond_the_memory_limit_is_left_to_the_kernel() {
    let Some(dir) = allowed() else {
        return;
    };
    let Some(array) = program("array", dir.path()) else {
        return;
    };
    let mut options = options(dir.path());
    options.limits.memory_percent = 0.001;
    let report = run(&command(&array, &["32"]), &options).unwrap();
    assert!(report.ran.status.success(), "{report:?}");
    let process = &report.ran.processes[0];
    assert!(
        process.left_no_memory >= 1 && process.placed_pages == 0,
        "{process:?}"
    );
    assert!(process.last_failure.contains("available"), "{process:?}");
}

#[test]
fn what_cannot_run_is_said_in_one_line() {
    let Some(dir) = allowed() else {
        return;
    };
    let say = |command: &[OsString]| run(command, &options(dir.path())).unwrap_err().to_string();
    assert!(say(&[]).contains("no command"));
    assert!(say(&["varve-no-such-program".into()]).contains("varve-no-such-program"));
    assert!(say(&["/nowhere/at/all".into()]).contains("/nowhere/at/all"));
}
