//! A policy from outside of the repository, as the tutorial has it: one type and one entry, made by the functions that make ours.

mod common;

use common::two_sockets_cached;
use varve_access::Pager;
use varve_pages::Placement;
use varve_pages::policies::policies;

// begin: policy
use varve_access::Fault;
use varve_pages::policies::Entry;
use varve_pages::{Frames, Policy};
use varve_spec::{Param, Want};

/// Every page on one socket, whichever core touches it.
struct OneSocket(usize);

const ENTRY: Entry = Entry {
    source: "this test",
    params: &[Param::new(
        "socket",
        Want::Count { min: 0, max: 1 },
        "0",
        "where all pages go",
    )],
    ..Entry::new(
        "one-socket",
        "every page on one socket",
        |values, topology| {
            let policy = OneSocket(values.count("socket") as usize);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};

impl Policy for OneSocket {
    fn place(&mut self, frames: &mut Frames, _: &Fault) -> Option<u32> {
        frames.take_from(self.0)
    }
}
// end: policy

/// The message about wrong parameters.
fn says(given: &str) -> String {
    let made = Placement::of(&ENTRY, given, two_sockets_cached());
    made.err().unwrap().to_string()
}

#[test]
fn a_policy_from_outside_is_an_entry_and_a_type() {
    assert!(policies().iter().all(|entry| entry.name != ENTRY.name));
    let topology = two_sockets_cached();
    assert!(ENTRY.is_for(&topology));
    let mut placement = Placement::of(&ENTRY, "socket=1", topology.clone()).unwrap();
    assert_eq!(placement.spec(), "one-socket:socket=1");
    for vpn in 0..10 {
        let fault = Fault {
            vpn,
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        };
        let frame = placement.fault(&fault).unwrap();
        assert_eq!(placement.frames().node_of(frame), Some(1));
    }
    assert_eq!(
        Placement::of(&ENTRY, "", topology).unwrap().spec(),
        "one-socket"
    );
}

#[test]
fn what_is_wrong_about_it_is_said_as_of_the_others() {
    assert_eq!(
        says("socket=2"),
        "page policy `one-socket`: `socket=2`: must be a whole number from 0 to 1"
    );
    assert_eq!(
        says("sockets=1"),
        "page policy `one-socket` has no parameter `sockets`; it takes socket, scale (did you mean `socket`?)"
    );
}
