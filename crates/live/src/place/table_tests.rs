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
    let mut table = Table::open(dir.path(), bins(), 0).unwrap();
    table.add([5, 5, 7]).unwrap();
    let other = Table::open(dir.path(), bins(), 0).unwrap();
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
    let mut table = Table::open(dir.path(), bins(), 0).unwrap();
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
    assert_eq!(Table::open(dir.path(), bins(), 0).unwrap().pages(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let next = Table::open(dir.path(), bins(), 0).unwrap();
    assert_eq!((next.pages(), next.load(2)), (0, 0));
    assert!(process_files(next.dir()).is_empty());
}

#[test]
fn after_exec_the_pages_of_the_old_program_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = Table::open(dir.path(), bins(), 0).unwrap();
    before.add([1, 2]).unwrap();
    let mut after = Table::open(dir.path(), bins(), 0).unwrap();
    after.after_exec();
    assert_eq!(after.pages(), 0);
}

#[test]
fn a_forked_child_leaves_its_parents_counts_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = Table::open(dir.path(), bins(), 0).unwrap();
    table.add([1, 2]).unwrap();
    table.after_fork();
    table.remove([1]);
    table.leave();
    assert_eq!(table.pages(), 2);
}

#[test]
fn a_run_finds_its_members_and_dismisses_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = Table::open(dir.path(), bins(), 77).unwrap();
    let parent = Table::open(dir.path(), bins(), 0).unwrap();
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
    let table = Table::open(dir.path(), bins(), 0).unwrap();
    let loads = table.dir().join("loads");
    drop(table);
    fs::write(&loads, [1u8; 64]).unwrap();
    let error = Table::open(dir.path(), bins(), 0)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains(&*loads.to_string_lossy()), "{error}");
}

#[test]
fn an_unused_table_is_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = Table::open(dir.path(), bins(), 0).unwrap();
    table.total.add(3);
    table.tidy();
    assert_eq!((table.pages(), table.load(3)), (0, 0));
}
