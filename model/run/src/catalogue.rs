//! Plans by name, for one kind of program: those of its own, one file each, and every page policy that a comparison may advise.

use crate::Error;
use crate::pipeline::Facts;
use varve_pages::policies::{self, policies};
use varve_spec::{Param, Values};

/// A plan before it is made: its name, parameters and purpose.
pub struct Entry<By: 'static> {
    /// Its name.
    pub name: &'static str,
    /// One line: the placement.
    pub about: &'static str,
    /// Publication that describes it; empty if it needs none.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Whether it can be followed on a real machine, so that it may be advised.
    pub advised: bool,
    /// The plan that this one is another name of; `all` leaves it out.
    pub alias: Option<&'static str>,
    /// How a program runs under it on this machine, or why it runs on a model alone.
    pub live: LiveSupport,
    /// Makes its placement rule from its parameters.
    pub make: Make<By>,
}

/// Makes a plan's placement rule from its parameters.
pub type Make<By> = fn(&Values) -> Result<By, varve_spec::Error>;

/// How a plan is followed on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveSupport {
    /// On a model and on this machine, by these words of `varve`.
    By(&'static str),
    /// On this machine alone, by these words of `varve`; why not on a model.
    Only(&'static str, &'static str),
    /// On a model alone; why.
    No(&'static str),
}

impl<By> Entry<By> {
    /// A plan without parameters that may be advised.
    pub const fn new(name: &'static str, about: &'static str, make: Make<By>) -> Entry<By> {
        Entry {
            name,
            about,
            source: "",
            params: &[],
            advised: true,
            alias: None,
            live: LiveSupport::No("no way is known"),
            make,
        }
    }
}

/// The plans of one kind of program.
pub struct Catalogue<By: 'static> {
    /// The word for a plan in errors, such as `plan for native programs`.
    pub kind: &'static str,
    /// Plans that are simpler than any page policy, the simplest first.
    pub before: &'static [Entry<By>],
    /// Plans that ask for more than a page policy does.
    pub after: &'static [Entry<By>],
    /// The placement rule of a page policy, `name:key=value,...`.
    pub pages: fn(String) -> By,
}

/// A plan that was named, with its parameters read.
#[derive(Clone, Debug)]
pub struct Chosen<By> {
    /// Its name alone.
    pub name: &'static str,
    /// As it was written.
    pub spec: String,
    /// One line: the placement.
    pub about: &'static str,
    /// Whether it may be advised.
    pub advised: bool,
    /// How it is followed on this machine.
    pub live: LiveSupport,
    /// Its placement rule.
    pub by: By,
}

impl<By> Chosen<By> {
    /// Facts of a run of it, within a budget of fast memory, bytes.
    pub fn facts(&self, catalogue: &Catalogue<By>, budget: Option<u64>) -> Facts {
        let names = catalogue.names();
        let policy = policies::entry(self.name).ok();
        Facts {
            rank: names
                .iter()
                .position(|name| *name == self.name)
                .unwrap_or(names.len()),
            about: self.about,
            advised: self.advised,
            linux: policy.is_some_and(|policy| policy.is_linux(false)),
            budget,
        }
    }
}

impl<By> Catalogue<By> {
    /// Its own plans, the simplest first.
    pub fn own(&self) -> impl Iterator<Item = &'static Entry<By>> {
        self.before.iter().chain(self.after)
    }

    /// The names that a user may write, the simplest plan first.
    pub fn names(&self) -> Vec<&'static str> {
        let own = |entries: &'static [Entry<By>]| entries.iter().map(|entry| entry.name);
        let pages = usual_policies().map(|policy| policy.name);
        own(self.before)
            .chain(pages)
            .chain(own(self.after))
            .collect()
    }

    /// The plan of `name` or `name:key=value,...`.
    ///
    /// # Errors
    /// There is no such plan, or a parameter or its value is wrong.
    pub fn find(&self, spec: &str) -> Result<Chosen<By>, Error> {
        let (name, given) = varve_spec::split(spec);
        let spec = spec.to_string();
        if let Some(entry) = self.own().find(|entry| entry.name == name) {
            let values = Values::parse(self.kind, entry.name, entry.params, &[], given)?;
            return Ok(Chosen {
                name: entry.name,
                about: entry.about,
                advised: entry.advised,
                live: entry.live,
                by: (entry.make)(&values)?,
                spec,
            });
        }
        let Some(policy) = page_policies().find(|policy| policy.name == name) else {
            // It is not there, which is said with the names of all that are.
            varve_spec::find(self.kind, name, &self.names(), |name| name)?;
            return Err(Error::NoPolicy(spec));
        };
        policy.values(given)?;
        Ok(Chosen {
            name: policy.name,
            about: policy.about,
            advised: policy.is_advised(false),
            live: of_policy(policy),
            by: (self.pages)(spec.clone()),
            spec,
        })
    }

    /// The plans that a list names. `all` stands for the page policies that are compared by default, and for every plan
    /// of its own that has no other name and for which `is_able` returns `true`.
    ///
    /// # Errors
    /// As [`Catalogue::find`].
    pub fn list(
        &self,
        list: &str,
        is_able: impl Fn(&Chosen<By>) -> bool,
    ) -> Result<Vec<Chosen<By>>, Error> {
        let alias = |name: &str| {
            let own = self.own().find(|entry| entry.name == name);
            own.is_some_and(|entry| entry.alias.is_some())
        };
        let mut able = Vec::new();
        for name in self.names().into_iter().filter(|name| !alias(name)) {
            able.extend(Some(self.find(name)?).filter(|plan| is_able(plan)));
        }
        let able: Vec<&str> = able.iter().map(|plan| plan.name).collect();
        let all = varve_spec::expand(list, &able);
        if all.is_empty() {
            return Err(Error::Asked(format!(
                "no {} is named: take some of {}",
                self.kind,
                self.names().join(", ")
            )));
        }
        all.iter().map(|spec| self.find(spec)).collect()
    }
}

/// Page policies that place any program between fast and slow memory.
pub fn page_policies() -> impl Iterator<Item = &'static policies::Entry> {
    let flat = [policies::Needs::Any, policies::Needs::Flat];
    policies()
        .iter()
        .filter(move |policy| flat.contains(&policy.needs))
}

/// Those of them that are compared by default: they may be advised, and are about two memories and not about a cache.
pub fn usual_policies() -> impl Iterator<Item = &'static policies::Entry> {
    let cached = Some(policies::Needs::MemoryMode);
    page_policies().filter(move |policy| policy.is_advised(false) && policy.linux != cached)
}

/// How a page policy places programs on this machine.
pub fn of_policy(policy: &policies::Entry) -> LiveSupport {
    match policy.live {
        policies::Live::Cache => LiveSupport::By("run --live"),
        policies::Live::Nodes | policies::Live::Frames => LiveSupport::By("tier"),
        policies::Live::No(why) => LiveSupport::No(why),
    }
}
