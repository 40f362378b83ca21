//! Plans that keep each kind of data in one memory, whatever the object.

use crate::plan::{Object, Plan, Space};
use varve_pima::Tier;

/// The memory of each kind of object.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// The name of the plan.
    pub name: &'static str,
    /// Of new objects.
    pub nursery: Tier,
    /// Of the collector's tables and of compiled code.
    pub tables: Tier,
    /// Of objects that survived.
    pub old: Tier,
}

impl Plan for Fixed {
    fn name(&self) -> &str {
        self.name
    }

    fn nursery(&self) -> Tier {
        self.nursery
    }

    fn metadata(&self) -> Tier {
        self.tables
    }

    fn code(&self) -> Tier {
        self.tables
    }

    fn place(&self, _: Object) -> Space {
        Space::Old(self.old)
    }
}
