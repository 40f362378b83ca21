//! Capabilities of this system, each tried rather than looked up; and the set-up of its memories ([`setup`]).

mod observe;
mod pages;
pub mod setup;
mod tools;

use serde::Serialize;

/// Can it be used?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Available {
    /// Yes.
    Yes,
    /// In part; `why` says which.
    Partly,
    /// No.
    No,
}

/// One ability of the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Can it be used by this process, now?
    pub available: Available,
    /// The finding, in one line.
    pub why: String,
    /// How to get it, in one line; empty when there is nothing to do.
    pub remedy: &'static str,
    /// Its use in Varve.
    pub used_for: &'static str,
}

/// A finding: the answer, and what was found.
type Found = (Available, String);

fn yes(why: impl Into<String>) -> Found {
    (Available::Yes, why.into())
}

fn partly(why: impl Into<String>) -> Found {
    (Available::Partly, why.into())
}

fn no(why: impl Into<String>) -> Found {
    (Available::No, why.into())
}

fn check(name: &'static str, used_for: &'static str, remedy: &'static str, found: Found) -> Check {
    let (available, why) = found;
    Check {
        name,
        available,
        why,
        remedy: if available == Available::Yes {
            ""
        } else {
            remedy
        },
        used_for,
    }
}

/// The last error of a system call, in words.
fn last_error() -> String {
    std::io::Error::last_os_error().to_string()
}

/// Tries everything. Takes well under a second and leaves nothing behind.
pub fn doctor() -> Vec<Check> {
    let mut checks = pages::checks();
    checks.extend(observe::checks());
    checks.extend(tools::checks());
    checks
}
