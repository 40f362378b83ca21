//! Every way to place memory, by name: page policies, and the plans for each kind of program. `varve plan` and `varve policy` list and explain the
//! entries here.

use varve_pages::policies;
use varve_run::catalogue::{Catalogue, Entry, LiveSupport, of_policy, usual_policies};
use varve_run::{Error, jvm, objects};
use varve_runtime::plans as heap;
use varve_sites::Profile;
use varve_spec::{Param, all_params};

/// The unit of placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pages of any program.
    Pages,
    /// Objects of a WebAssembly program.
    Objects,
    /// Allocation sites of a native program.
    Sites,
    /// Generations of a Java virtual machine.
    Generations,
}

impl Kind {
    /// Whose plans these are.
    pub fn whose(self) -> &'static str {
        match self {
            Kind::Pages => "any program",
            Kind::Objects => "WebAssembly programs",
            Kind::Sites => "native programs",
            Kind::Generations => "Java virtual machines",
        }
    }
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The unit that it places.
    pub kind: Kind,
    /// Its name.
    pub name: &'static str,
    /// One line: its function.
    pub about: &'static str,
    /// Where it comes from; empty if it needs no source.
    pub source: &'static str,
    /// Its parameters, those that all of the kind have included.
    pub params: Vec<Param>,
    /// Its input while the program runs.
    pub observes: &'static [policies::Observed],
    /// The default of the time between two wake-ups, as a user writes it, of those that wake.
    pub period: Option<&'static str>,
    /// Whether it needs a site profile.
    pub profile: bool,
    /// How it is followed on this machine.
    pub live: LiveSupport,
}

/// Page policies.
pub fn page_policies() -> Vec<Listed> {
    policies::policies().iter().map(policy).collect()
}

fn policy(entry: &'static policies::Entry) -> Listed {
    Listed {
        kind: Kind::Pages,
        name: entry.name,
        about: entry.about,
        source: entry.source,
        params: all_params(entry.params, &[policies::SCALE]),
        observes: entry.observes,
        period: entry.period.and_then(|key| {
            let param = entry.params.iter().find(|param| param.key == key)?;
            Some(param.default)
        }),
        profile: false,
        live: of_policy(entry),
    }
}

/// Plans: those of heaps, of native programs, of Java virtual machines, and the page policies that are plans of the last two.
pub fn plans() -> Vec<Listed> {
    let heaps = heap::plans().iter().map(|entry| Listed {
        kind: Kind::Objects,
        name: entry.name,
        about: entry.about,
        source: entry.source,
        params: all_params(entry.params, &[heap::CODE]),
        observes: &[],
        period: None,
        profile: entry.profile,
        live: LiveSupport::By("run --plan"),
    });
    let sites = own(Kind::Sites, &objects::PLANS);
    let generations = own(Kind::Generations, &jvm::PLANS);
    heaps
        .chain(sites)
        .chain(generations)
        .chain(usual_policies().map(policy))
        .collect()
}

fn own<By>(kind: Kind, plans: &Catalogue<By>) -> impl Iterator<Item = Listed> {
    plans.own().map(move |entry: &Entry<By>| Listed {
        kind,
        name: entry.name,
        about: entry.about,
        source: entry.source,
        params: entry.params.to_vec(),
        observes: &[],
        period: None,
        profile: false,
        live: entry.live,
    })
}

/// The plans that `name` or `name:key=value,...` names, one for each kind of program that has it and takes these parameters.
///
/// # Errors
/// No kind has such a plan, or none that has it takes these parameters.
pub fn plans_named(spec: &str) -> Result<Vec<Listed>, Error> {
    let (name, _) = varve_spec::split(spec);
    let mut named = plans();
    named.retain(|plan| plan.name == name);
    let mut refused = None;
    named.retain(|plan| match check(plan.kind, spec) {
        Ok(()) => true,
        Err(e) => {
            refused.get_or_insert(e);
            false
        }
    });
    match (named.is_empty(), refused) {
        (false, _) => Ok(named),
        (true, Some(e)) => Err(e),
        (true, None) => {
            let mut names: Vec<&str> = plans().iter().map(|plan| plan.name).collect();
            names.sort_unstable();
            names.dedup();
            varve_spec::find("plan", spec, &names, |name| name)?;
            Ok(named)
        }
    }
}

/// Checks that a kind has a plan with these parameters.
///
/// # Errors
/// It has not.
fn check(kind: Kind, spec: &str) -> Result<(), Error> {
    match kind {
        Kind::Pages => policies::parse(spec).map(drop).map_err(Error::from),
        Kind::Objects => heap::by_name(spec, Some(&Profile::default()))
            .map(drop)
            .map_err(|e| Error::Asked(e.to_string())),
        Kind::Sites => objects::PLANS.find(spec).map(drop),
        Kind::Generations => jvm::PLANS.find(spec).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(spec: &str) -> Vec<Kind> {
        let plans = plans_named(spec).unwrap();
        plans.iter().map(|plan| plan.kind).collect()
    }

    #[test]
    fn a_name_is_each_plan_that_has_it() {
        use Kind::{Generations, Objects, Pages, Sites};
        assert_eq!(kinds("kg-n"), [Objects, Generations]);
        assert_eq!(kinds("kg-n:outside=slow"), [Generations]);
        assert_eq!(kinds("kg-n:code=slow"), [Objects]);
        assert_eq!(kinds("slow-copy"), [Objects, Generations]);
        assert_eq!(kinds("knapsack"), [Objects, Sites]);
        assert_eq!(kinds("hotset:cool=32"), [Pages]);
        assert_eq!(kinds("first-touch"), [Objects, Pages]);
        assert_eq!(kinds("slow"), [Objects, Sites, Generations]);
        let error = |spec: &str| plans_named(spec).unwrap_err().to_string();
        assert!(error("kg-n:inside=slow").contains("inside"));
        assert!(error("kg-m").contains("did you mean `kg-n`?"));
    }

    #[test]
    fn every_entry_says_what_it_does_and_how_it_is_there_live() {
        for plan in page_policies().into_iter().chain(plans()) {
            assert!(!plan.about.is_empty(), "{}", plan.name);
            let why = match plan.live {
                LiveSupport::By(how) => how,
                LiveSupport::Only(_, why) | LiveSupport::No(why) => why,
            };
            assert!(
                !why.is_empty() && !why.contains("no file of it"),
                "{}",
                plan.name
            );
        }
    }
}
