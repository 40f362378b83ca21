//! Errors of a specification.

use std::fmt;

/// The owner of the parameters, for errors: a kind of thing and a name, which is empty where there is only one.
pub(crate) fn whose(kind: &str, name: &str) -> String {
    match name {
        "" => kind.into(),
        name => format!("{kind} `{name}`"),
    }
}

/// One line for a user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing of the kind has that name.
    #[error("no {kind} is called `{name}`; there are {known}{}", suggestion(meant))]
    Unknown {
        /// The kind of thing.
        kind: &'static str,
        /// The name given.
        name: String,
        /// Every name, separated by commas.
        known: String,
        /// The nearest of them, if one is near.
        meant: Option<String>,
    },
    /// It has no such parameter.
    #[error(
        "{whose} has no parameter `{key}`; it takes {known}{}",
        suggestion(meant)
    )]
    UnknownKey {
        /// The thing that it was given to.
        whose: String,
        /// The key given.
        key: String,
        /// Its keys, separated by commas.
        known: String,
        /// The nearest of them, if one is near.
        meant: Option<String>,
    },
    /// The same key was given twice.
    #[error("{whose}: parameter `{key}` is given twice")]
    Twice {
        /// The thing that it was given to.
        whose: String,
        /// The key.
        key: String,
    },
    /// A parameter without a default is missing.
    #[error("{whose} needs `{key}=...`: {want}")]
    Needed {
        /// The thing that needs it.
        whose: String,
        /// The key.
        key: String,
        /// How it is written.
        want: String,
    },
    /// A value cannot be read, or cannot be used.
    #[error("{whose}: `{given}`{why}")]
    Value {
        /// The thing that it was given to.
        whose: String,
        /// `key=value`, as it was written.
        given: String,
        /// The problem, and the remedy.
        why: Why,
    },
}

/// The problem of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It lacks its unit; a value that has one.
    NoUnit(String),
    /// A rule that it breaks: `must be ...`.
    Rule(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NoUnit(remedy) => write!(f, " has no unit: write {remedy}"),
            Why::Rule(rule) => write!(f, ": {rule}"),
        }
    }
}

impl Error {
    /// A value that breaks a rule, such as `must be a power of two`, where no [`Values`](crate::Values) are at hand.
    pub fn rule(
        kind: &'static str,
        name: &str,
        key: &str,
        value: impl fmt::Display,
        rule: impl Into<String>,
    ) -> Error {
        Error::Value {
            whose: whose(kind, name),
            given: format!("{key}={value}"),
            why: Why::Rule(rule.into()),
        }
    }
}

fn suggestion(meant: &Option<String>) -> String {
    match meant {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => String::new(),
    }
}
