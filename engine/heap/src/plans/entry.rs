//! The description of a plan, available without making it.

use varve_spec::{Param, Values, Want};

use crate::plan::Plan;
use varve_pima::PimaError;
use varve_pima::Tier;
use varve_sites::{Profile, classify};

/// The word for a plan in errors.
pub(super) const KIND: &str = "heap plan";

/// The parameter that every plan has.
pub const CODE: Param = Param::new(
    "code",
    Want::Word(&["plan", "fast", "slow"]),
    "plan",
    "the memory of compiled code: the plan's own choice (fast, except for the slow plans), or another one",
);

/// A plan: its name, its parameters and requirements, its purpose, its constructor.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One line: which objects are in which memory.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it needs a site profile.
    pub profile: bool,
    /// Whether it uses intervals of its work that the program reports: it tries both memories.
    pub intervals: bool,
    /// Whether it is worth comparing where its memories are colours of one memory: its placement depends on how hot objects are, not on which memory
    /// is faster.
    pub colours: bool,
    /// Whether it is among the few that are compared if the user names no plan.
    pub usual: bool,
    /// Its parameters; [`CODE`] comes on top.
    pub params: &'static [Param],
    /// Makes it.
    pub make: Make,
}

/// Makes a plan from its parameters and a profile, which is empty for plans that need none.
pub type Make = fn(&Values, &Profile) -> Result<Box<dyn Plan>, PlanError>;

/// A plan that was made, and where it has compiled code.
pub struct Chosen {
    /// The plan.
    pub plan: Box<dyn Plan>,
    /// The memory of compiled code.
    pub code: Tier,
}

impl Entry {
    /// A plan that needs nothing but the program, and takes no parameters.
    pub const fn new(name: &'static str, about: &'static str, make: Make) -> Entry {
        Entry {
            name,
            about,
            source: "",
            profile: false,
            intervals: false,
            colours: false,
            usual: false,
            params: &[],
            make,
        }
    }

    /// Makes the plan with the parameters `given`, `key=value,...`, and the profile of the program's allocation sites if there
    /// is one.
    ///
    /// # Errors
    /// If a parameter or its value is wrong, or a profile is needed.
    pub fn make(&self, given: &str, profile: Option<&Profile>) -> Result<Chosen, PlanError> {
        let values = Values::parse(KIND, self.name, self.params, &[CODE], given)?;
        if self.profile && profile.is_none() {
            return Err(PlanError::NoProfile {
                plan: self.name.into(),
            });
        }
        let plan = (self.make)(&values, profile.unwrap_or(&Profile::default()))?;
        let code = match values.word(CODE.key) {
            "fast" => Tier::FAST,
            "slow" => Tier::SLOW,
            _ => plan.code(),
        };
        Ok(Chosen { plan, code })
    }

    /// Whether it can be had without saying more, so that `all` means it too: with a profile or not, and where its memories are
    /// `colours` or not.
    pub fn is_for(&self, profiled: bool, colours: bool) -> bool {
        (profiled || !self.profile) && (self.colours || !colours)
    }
}

/// Why there is no such plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Its name or its parameters.
    #[error(transparent)]
    Spec(#[from] varve_spec::Error),
    /// A plan by allocation sites, without a profile of them.
    #[error("heap plan `{plan}` needs a site profile, made on another input than this run's")]
    NoProfile {
        /// The plan.
        plan: String,
    },
    /// Cold sites that cannot be chosen.
    #[error("heap plan `knapsack`: {0}")]
    Knapsack(#[from] classify::KnapsackError),
    /// Settings of the sampler that cannot work.
    #[error(transparent)]
    Pima(#[from] PimaError),
}
