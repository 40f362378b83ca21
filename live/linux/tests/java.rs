//! Java programs where their memory may not be placed: they run as without Varve, unless that was ruled out.

use std::ffi::OsString;
use std::time::Duration;
use varve_live::LiveError;
use varve_live::java::{
    Decided, GenerationMove, GenerationPolicy, Interval, JavaReport, Job, Placing, run,
};
use varve_live::nodes::Kinds;

/// No policy decides here.
#[derive(Debug)]
struct Nobody;

impl GenerationPolicy for Nobody {
    fn interval(&mut self, _: &Interval) -> Option<bool> {
        None
    }
    fn forget(&mut self, _: Duration) {}
    fn moved(&mut self, _: &GenerationMove) {}
}

type Ran = Result<(JavaReport, Vec<Decided<Nobody>>), LiveError>;

fn ran(words: &[&str], must: bool) -> Ran {
    let command: Vec<OsString> = words.iter().map(OsString::from).collect();
    let kinds = Kinds {
        fast: vec![0],
        slow: vec![0],
    };
    let job = Job {
        command: &command,
        placing: Placing::Interleaved,
        kinds: &kinds,
        must,
    };
    run(&job, None)
}

/// From now on the kernel refuses this thread, and what it starts, to bind and move memory, as containers do.
fn without_the_right_to_bind() {
    // Numbers of mbind and set_mempolicy; of move_pages.
    let refused = [
        libc::SYS_mbind,
        libc::SYS_set_mempolicy,
        libc::SYS_move_pages,
    ];
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    // The number of the call, compared with each; the error, or leave.
    let mut program = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for (i, call) in refused.into_iter().enumerate() {
        let to_the_error = (refused.len() - i) as u8;
        program.push(step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            to_the_error,
            0,
            call as u32,
        ));
    }
    program.push(step(
        libc::BPF_RET | libc::BPF_K,
        0,
        0,
        libc::SECCOMP_RET_ALLOW,
    ));
    let error = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    program.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, error));
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program lives until the kernel has taken it over; it binds this thread alone.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter)
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn where_memory_may_not_be_bound_the_program_runs_as_without_varve() {
    let in_a_container = std::thread::spawn(|| {
        without_the_right_to_bind();
        let words = ["sh", "-c", "test -z \"$JAVA_TOOL_OPTIONS\" && exit 3"];
        (ran(&words, false), ran(&words, true))
    });
    let (ran, refused) = in_a_container.join().unwrap();
    let (report, _) = ran.unwrap();
    assert_eq!(report.status.code(), Some(3));
    let [note] = &report.notes[..] else {
        panic!("{:?}", report.notes)
    };
    assert!(note.contains("is refused"), "{note}");
    assert!(note.contains("as without Varve"), "{note}");
    assert!(!note.contains('\n'), "{note}");
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("is refused"), "{refused}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let missing = ran(&["no-such-java", "-version"], false).unwrap_err();
    assert!(missing.to_string().contains("no-such-java"), "{missing}");
}
