//! `first-touch`: what Linux does with a program that says nothing. Memory is fast until there is no more of it, then slow, and
//! what is somewhere stays there.

use crate::plan::{From, Object, Plan, Space, Tier};

/// Fast memory as long as there is some, then slow memory.
#[derive(Clone, Copy, Debug)]
pub struct FirstTouch;

impl Plan for FirstTouch {
    fn name(&self) -> &str {
        "first-touch"
    }

    fn place(&self, object: Object) -> Space {
        match object.from {
            From::Old(tier) => Space::Old(tier),
            _ => Space::Old(Tier::FAST),
        }
    }
}
