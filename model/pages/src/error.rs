//! Why a policy could not be made.

/// One line for a user.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Its name or its parameters.
    #[error(transparent)]
    Spec(#[from] varve_spec::Error),
    /// The policy does not go with the machine.
    #[error(
        "page policy `{policy}` needs {needs}, but this machine has {has}; use one with mode = \"{mode}\""
    )]
    Unfit {
        /// The policy.
        policy: String,
        /// Memory that the policy needs.
        needs: &'static str,
        /// Memory that the machine has.
        has: &'static str,
        /// The mode of a machine that would do.
        mode: &'static str,
    },
    /// The machine cannot be cut into such pages.
    #[error(transparent)]
    Topology(#[from] crate::topology::TopologyError),
    /// The machine's memory has no DIMMs that pages could be put on, or not these.
    #[error(transparent)]
    Trays(#[from] crate::trays::TrayError),
}
