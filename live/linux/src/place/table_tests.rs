//! The shared table through the lives of processes.

use super::*;

fn bins() -> Bins {
    Bins {
        sets: 4096,
        ways: 1,
    }
}

#[test]
fn pages_of_two_processes_add_up_and_come_out_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = BinTable::open(dir.path(), bins(), 0).unwrap();
    table.add([5, 5, 7]).unwrap();
    let other = BinTable::open(dir.path(), bins(), 0).unwrap();
    assert_eq!((other.load(5), other.load(7), other.pages()), (2, 1, 3));
    table.remove([5, 9]);
    assert_eq!((other.load(5), other.load(9), other.pages()), (1, 0, 2));
    table.leave();
    assert_eq!((other.load(5), other.load(7), other.pages()), (0, 0, 0));
}

/// A process that was killed leaves its file behind; the next one to open the table takes its pages out.
#[test]
fn pages_of_a_killed_process_are_taken_out_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = BinTable::open(dir.path(), bins(), 0).unwrap();
    table.add([1, 2, 3]).unwrap();
    let mut child = std::process::Command::new("sleep")
        .arg("100")
        .spawn()
        .unwrap();
    let own = process_files(table.dir());
    let childs = format!("{}-{}", child.id(), start_time(child.id()).unwrap());
    // As if the child had counted these pages.
    fs::rename(table.dir().join(&own[0]), table.dir().join(&childs)).unwrap();
    table.own = None;
    assert_eq!(BinTable::open(dir.path(), bins(), 0).unwrap().pages(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let next = BinTable::open(dir.path(), bins(), 0).unwrap();
    assert_eq!((next.pages(), next.load(2)), (0, 0));
    assert!(process_files(next.dir()).is_empty());
}

#[test]
fn after_exec_the_pages_of_the_old_program_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = BinTable::open(dir.path(), bins(), 0).unwrap();
    before.add([1, 2]).unwrap();
    let mut after = BinTable::open(dir.path(), bins(), 0).unwrap();
    after.after_exec();
    assert_eq!(after.pages(), 0);
}

#[test]
fn a_forked_child_leaves_its_parents_counts_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = BinTable::open(dir.path(), bins(), 0).unwrap();
    table.add([1, 2]).unwrap();
    table.after_fork();
    table.remove([1]);
    table.leave();
    assert_eq!(table.pages(), 2);
}

#[test]
fn a_run_finds_its_members_and_dismisses_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = BinTable::open(dir.path(), bins(), 77).unwrap();
    let parent = BinTable::open(dir.path(), bins(), 0).unwrap();
    table.set_placing(true);
    table.add([4]).unwrap();
    let pid = std::process::id();
    assert_eq!(
        parent.members(77),
        [Member {
            pid,
            pages: 1,
            leaving: false,
            step: 1
        }]
    );
    table.set_placing(false);
    assert!(!table.leaving());
    assert_eq!(
        parent.members(77),
        [Member {
            pid,
            pages: 1,
            leaving: true,
            step: 2
        }]
    );
    assert!(parent.members(78).is_empty());
    parent.dismiss(pid);
    assert!(table.leaving());
}

#[test]
fn a_table_of_something_else_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let table = BinTable::open(dir.path(), bins(), 0).unwrap();
    let loads = table.dir().join("loads");
    drop(table);
    fs::write(&loads, [1u8; 64]).unwrap();
    let error = BinTable::open(dir.path(), bins(), 0)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains(&*loads.to_string_lossy()), "{error}");
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn an_unused_table_is_emptied_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = BinTable::open(dir.path(), bins(), 0).unwrap();
    table.total.add(3);
    table.tidy();
    assert_eq!((table.pages(), table.load(3)), (0, 0));
    assert!(is_empty(dir.path()));
}

#[test]
fn the_last_process_that_leaves_removes_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = BinTable::open(dir.path(), bins(), 0).unwrap();
    let mut last = BinTable::open(dir.path(), bins(), 0).unwrap();
    last.add([4]).unwrap();
    first.leave();
    assert_eq!((first.load(4), is_empty(dir.path())), (1, false));
    last.leave();
    assert!(is_empty(dir.path()));
}

/// Another process's last page may go, and the directory with it, while this process is about to place its first one.
#[test]
fn a_table_that_was_removed_is_made_anew_by_who_still_uses_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut early = BinTable::open(dir.path(), bins(), 0).unwrap();
    let mut other = BinTable::open(dir.path(), bins(), 0).unwrap();
    other.tidy();
    assert!(is_empty(dir.path()));
    let lock = early.lock().unwrap();
    early.add([4, 5]).unwrap();
    drop(lock);
    let later = BinTable::open(dir.path(), bins(), 0).unwrap();
    assert_eq!((later.load(4), later.pages()), (1, 2));
    early.leave();
    assert!(is_empty(dir.path()));
}

/// A run and its program were killed together, so no process was left to clean up: the next run does, whatever its cache is.
#[test]
fn the_tables_of_killed_runs_are_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let others = dir.path().join("varve-bins-many");
    fs::create_dir(&others).unwrap();
    let mut killed = BinTable::open(dir.path(), bins(), 0).unwrap();
    killed.add([1]).unwrap();
    let own = process_files(killed.dir());
    // No process has this number and began when the machine did.
    fs::rename(
        killed.dir().join(&own[0]),
        killed.dir().join("4194304000-1"),
    )
    .unwrap();
    BinTable::tidy_all(dir.path());
    assert!(!killed.dir().exists());
    assert!(others.exists(), "the table has no owner");
}
