//! Profiles in files.

use std::collections::HashSet;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::any_site::join;
use crate::{AnySite, Counts, Key, Profile, SiteProfile, java, native};

const FORMAT: &str = "varve sites";
/// The version that is written. All versions from 1 on are read; the first had no `kind` and managed programs only.
const VERSION: u32 = 2;

/// Errors of a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It cannot be read or written.
    #[error("{file}: {source}; site profiles are made with `varve profile`")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{file}: not a site profile; make one with `varve profile PROGRAM -o FILE.sites`")]
    NotOne {
        /// The file.
        file: String,
    },
    /// Of a later version of this program.
    #[error(
        "{file}: a site profile of version {version}, and this program reads versions up to {VERSION}; make it anew with `varve profile PROGRAM -o FILE.sites`"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// It begins as a profile does, and goes on otherwise.
    #[error(
        "{file}: damaged site profile: {what}; make it anew with `varve profile PROGRAM -o FILE.sites`"
    )]
    Damaged {
        /// The file.
        file: String,
        /// The problem, with line and column or the site.
        what: String,
    },
    /// It does not fit the program.
    #[error(
        "{file}: a profile of {of}, not of {program}: {known} of its {sites} allocation sites are in functions of this program; make one with `varve profile {program} -o FILE.sites`"
    )]
    Foreign {
        /// The file.
        file: String,
        /// The program it was made of.
        of: String,
        /// The program it was to be used for.
        program: String,
        /// Sites in functions that the program has.
        known: usize,
        /// All sites.
        sites: usize,
    },
    /// It is of the other kind of programs.
    #[error("{file}: a profile of a {is} program, and one of a {wanted} program is needed here")]
    Kind {
        /// The file.
        file: String,
        /// Its actual kind.
        is: String,
        /// The requested kind.
        wanted: &'static str,
    },
    /// Profiles of two programs cannot be added.
    #[error("profiles of {one} and of {other} cannot be merged: they are different programs")]
    Programs {
        /// One program.
        one: String,
        /// The other one.
        other: String,
    },
    /// Times on two machines cannot be added.
    #[error(
        "a profile with times on `{one}` and one with times on `{other}` cannot be merged; make both for one machine"
    )]
    Machines {
        /// One machine.
        one: String,
        /// The other one.
        other: String,
    },
    /// Survival under two collectors cannot be added.
    #[error(
        "a profile under the collector {one} and one under {other} cannot be merged; make both under one"
    )]
    Collectors {
        /// One collector.
        one: String,
        /// The other one.
        other: String,
    },
    /// Estimates and counts cannot be added.
    #[error(
        "a profile from samples (--live) and one of exact counts cannot be merged; make both in the same way"
    )]
    Sampled,
}

/// A kind of profile, and how it is kept in files. All kinds begin alike; what follows is their own.
pub trait SitesFile: Sized {
    /// The kind's name in files.
    const KIND: &'static str;
    /// Its data of a site.
    type Site: AnySite;
    /// The rest of a file, sites in the order of their keys.
    type Rest: Serialize + DeserializeOwned;

    /// The program's name.
    fn program(&self) -> &str;

    /// Its sites.
    fn sites(&mut self) -> &mut Vec<Self::Site>;

    /// The rest of a file.
    fn rest(&self) -> Self::Rest;

    /// A profile of what a file has.
    ///
    /// # Errors
    /// The profile has an error. Sites are checked elsewhere.
    fn of(program: String, rest: Self::Rest) -> Result<Self, String>;

    /// Adds up all but the sites.
    ///
    /// # Errors
    /// The profiles cannot be added.
    fn merge_rest(&mut self, _other: &Self) -> Result<(), ProfileError> {
        Ok(())
    }

    /// Adds what another run of the same program counted, with whatever arguments.
    ///
    /// # Errors
    /// If it is the profile of another program, or was made otherwise, so that its numbers mean something else.
    fn merge(&mut self, other: &Self) -> Result<(), ProfileError>
    where
        Self: Clone,
    {
        if self.program() != other.program() {
            return Err(ProfileError::Programs {
                one: self.program().into(),
                other: other.program().into(),
            });
        }
        self.merge_rest(other)?;
        let more = other.clone().sites().drain(..).collect();
        join(self.sites(), more, Self::Site::add);
        Ok(())
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// If it cannot be read, is no profile of this kind, of a later version, or its numbers cannot be.
    fn read(file: &Path) -> Result<Self, ProfileError> {
        Self::parse(&file.display().to_string(), &read(file)?)
    }

    /// The profile as it is in a file, sites in the order of their keys: the same one always as the same bytes.
    fn text(&self) -> String {
        let whole = Whole {
            format: FORMAT,
            version: VERSION,
            kind: Self::KIND,
            program: self.program(),
            rest: self.rest(),
        };
        serde_json::to_string_pretty(&whole).expect("numbers and strings") + "\n"
    }

    /// Reads what [`SitesFile::text`] wrote; `file` is named in errors.
    ///
    /// # Errors
    /// As [`SitesFile::read`].
    fn parse(file: &str, text: &str) -> Result<Self, ProfileError> {
        let begin = begin(file, text)?;
        if begin.kind != Self::KIND {
            return Err(ProfileError::Kind {
                file: file.into(),
                is: begin.kind,
                wanted: Self::KIND,
            });
        }
        parse_rest(file, text, begin)
    }
}

#[derive(Serialize)]
struct Whole<'a, R> {
    format: &'a str,
    version: u32,
    kind: &'a str,
    program: &'a str,
    #[serde(flatten)]
    rest: R,
}

/// The start of every version of every kind.
#[derive(Deserialize)]
struct Begin {
    format: String,
    version: u32,
    #[serde(default = "managed")]
    kind: String,
    program: Option<String>,
}

fn managed() -> String {
    Profile::KIND.into()
}

/// Checks what a profile begins with.
fn begin(file: &str, text: &str) -> Result<Begin, ProfileError> {
    let begin: Begin = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof if text.contains(FORMAT) => damaged(file, error),
        _ => ProfileError::NotOne { file: file.into() },
    })?;
    if begin.format != FORMAT {
        return Err(ProfileError::NotOne { file: file.into() });
    }
    if !(1..=VERSION).contains(&begin.version) {
        return Err(ProfileError::Version {
            file: file.into(),
            version: begin.version,
        });
    }
    Ok(begin)
}

/// Parses the rest; each site occurs once, with valid numbers.
fn parse_rest<P: SitesFile>(file: &str, text: &str, begin: Begin) -> Result<P, ProfileError> {
    let wrong = |what: String| damaged(file, what);
    let program = begin.program.ok_or_else(|| wrong("no `program`".into()))?;
    let rest = serde_json::from_str(text).map_err(|error| damaged(file, error))?;
    let mut profile = P::of(program, rest).map_err(wrong)?;
    let mut keys = HashSet::new();
    for (number, site) in profile.sites().iter().enumerate() {
        let twice = !keys.insert(site.key());
        let what = contradiction(site.counts())
            .or_else(|| site.impossible())
            .or_else(|| twice.then(|| "it is there twice".into()));
        if let Some(what) = what {
            let name = site.name().unwrap_or_else(|| number.to_string());
            return Err(wrong(format!("site {name}: {what}")));
        }
    }
    Ok(profile)
}

/// A profile of whatever program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyProfile {
    /// Of a managed program.
    Managed(Profile),
    /// Of a native program.
    Native(native::Profile),
    /// Of a Java program on a stock virtual machine.
    Java(java::Profile),
}

impl AnyProfile {
    /// Reads a profile from a file.
    ///
    /// # Errors
    /// If it cannot be read, is no profile, of a later version, or its numbers cannot be.
    pub fn read(file: &Path) -> Result<AnyProfile, ProfileError> {
        AnyProfile::parse(&file.display().to_string(), &read(file)?)
    }

    /// Reads what the `text` of a profile of any kind wrote; `file` is named in errors.
    ///
    /// # Errors
    /// As [`AnyProfile::read`].
    pub fn parse(file: &str, text: &str) -> Result<AnyProfile, ProfileError> {
        let begin = begin(file, text)?;
        match &begin.kind[..] {
            Profile::KIND => parse_rest(file, text, begin).map(AnyProfile::Managed),
            native::Profile::KIND => parse_rest(file, text, begin).map(AnyProfile::Native),
            java::Profile::KIND => parse_rest(file, text, begin).map(AnyProfile::Java),
            other => Err(damaged(file, format!("there is no kind `{other}`"))),
        }
    }
}

/// The text of a file.
fn read(file: &Path) -> Result<String, ProfileError> {
    let name = file.display().to_string();
    std::fs::read_to_string(file).map_err(|source| match source.kind() {
        std::io::ErrorKind::InvalidData => ProfileError::NotOne { file: name },
        _ => ProfileError::Io { file: name, source },
    })
}

fn damaged(file: &str, what: impl std::fmt::Display) -> ProfileError {
    ProfileError::Damaged {
        file: file.into(),
        what: what.to_string(),
    }
}

/// The rest of the file of a managed program.
#[derive(Serialize, Deserialize)]
pub struct Rest {
    sites: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    offset: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(flatten)]
    counts: Counts,
}

impl SitesFile for Profile {
    const KIND: &'static str = "managed";
    type Site = SiteProfile;
    type Rest = Rest;

    fn program(&self) -> &str {
        &self.program
    }

    fn sites(&mut self) -> &mut Vec<SiteProfile> {
        &mut self.sites
    }

    fn rest(&self) -> Rest {
        let mut sites = self.sites.clone();
        sites.sort_by(|a, b| a.key.cmp(&b.key));
        let line = |site: SiteProfile| Line {
            key: site.key,
            offset: site.offset,
            line: site.line,
            counts: site.counts,
        };
        Rest {
            sites: sites.into_iter().map(line).collect(),
        }
    }

    fn of(program: String, rest: Rest) -> Result<Profile, String> {
        let site = |line: Line| SiteProfile {
            key: line.key,
            offset: line.offset,
            line: line.line,
            counts: line.counts,
        };
        let sites = rest.sites.into_iter().map(site).collect();
        Ok(Profile { program, sites })
    }
}

impl AnySite for SiteProfile {
    type Key = Key;

    fn key(&self) -> Key {
        self.key.clone()
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn add(&mut self, more: &SiteProfile) {
        self.counts.add(&more.counts);
    }

    fn name(&self) -> Option<String> {
        Some(self.key.to_string())
    }
}

/// Counts as they are in files where most of them are zero.
pub(crate) fn without_zeros(counts: &Counts) -> Map<String, Value> {
    let Ok(Value::Object(mut all)) = serde_json::to_value(counts) else {
        unreachable!("a struct of numbers")
    };
    let is_nothing =
        |value: &Value| value.as_u64() == Some(0) || value.as_array().is_some_and(Vec::is_empty);
    all.retain(|_, value| !is_nothing(value));
    all
}

/// Restores the counts of a site that [`without_zeros`] shortened.
pub(crate) fn with_zeros(counts: Map<String, Value>, site: usize) -> Result<Counts, String> {
    let counts = serde_json::from_value(Value::Object(counts));
    counts.map_err(|error| format!("site {site}: {error}"))
}

/// A site's stack, of the numbers of its frames.
pub(crate) fn stack_of<F: Clone>(
    numbers: Vec<usize>,
    frames: &[F],
    site: usize,
) -> Result<Vec<F>, String> {
    let frame = |at: usize| {
        let frame = frames.get(at).cloned();
        frame.ok_or_else(|| format!("site {site}: there is no frame {at}"))
    };
    numbers.into_iter().map(frame).collect()
}

/// Numbers that no run can have counted.
fn contradiction(c: &Counts) -> Option<String> {
    let parts = [
        ("survivors", c.survivors, "objects", c.objects),
        ("survived_bytes", c.survived_bytes, "bytes", c.bytes),
        ("old_reads", c.old_reads, "reads", c.reads),
        ("old_writes", c.old_writes, "writes", c.writes),
        ("freed", c.freed, "objects", c.objects),
        ("misses", c.misses, "reads", c.reads),
        ("write_misses", c.write_misses, "writes", c.writes),
    ];
    for (part, few, whole, many) in parts {
        if few > many {
            return Some(format!("{few} {part} of {many} {whole}"));
        }
    }
    let counted = c
        .accesses
        .iter()
        .try_fold(0u64, |sum, n| sum.checked_add(*n));
    (!c.accesses.is_empty() && counted != Some(c.survivors))
        .then(|| format!("`accesses` are not of {} survivors", c.survivors))
        .or_else(|| (c.accesses.len() > 65).then(|| "`accesses` has more than 65 numbers".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{profile, site};
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let mut whole = profile([
            site("a\"b\u{e9}", Counts::default()),
            site(
                "c",
                Counts {
                    objects: u64::MAX,
                    bytes: 5,
                    survivors: 3,
                    survived_bytes: 5,
                    reads: 9,
                    writes: 8,
                    old_reads: 7,
                    old_writes: 6,
                    accesses: vec![0, 1, 2],
                    ..Counts::default()
                },
            ),
        ]);
        whole.sites[1].line = Some("Engine.java:88".into());
        let text = whole.text();
        assert_eq!(Profile::parse("p", &text).unwrap(), whole);
        whole.sites.reverse();
        assert_eq!(whole.text(), text, "the order of sites does not matter");
    }

    #[test]
    fn the_first_version_is_read() {
        let whole = profile([site("f", Counts::default())]);
        let text = whole.text().replace("\"version\": 2", "\"version\": 1");
        let text = text.replace("  \"kind\": \"managed\",\n", "");
        assert!(!text.contains("kind"));
        assert_eq!(Profile::parse("p", &text).unwrap(), whole);
    }

    #[test]
    fn damage_is_named_in_one_line() {
        let good = profile([site("f", Counts::default())]).text();
        for (text, says) in [
            (String::new(), "p.sites: not a site profile"),
            ("{}".into(), "p.sites: not a site profile"),
            ("\0asm\u{1}".into(), "p.sites: not a site profile"),
            (
                good.replace("varve sites", "others"),
                "p.sites: not a site profile",
            ),
            (
                good.replace("\"version\": 2", "\"version\": 3"),
                "p.sites: a site profile of version 3",
            ),
            (
                good.replace("managed", "native"),
                "p.sites: a profile of a native program",
            ),
            (
                good[..good.len() / 2].into(),
                "p.sites: damaged site profile: EOF",
            ),
            (
                good.replace("\"bytes\": 0", "\"bytes\": -1"),
                "p.sites: damaged site profile: ",
            ),
            (
                good.replace("\"survivors\": 0", "\"survivors\": 7"),
                "p.sites: damaged site profile: site T in f (0): 7 survivors of 0 objects",
            ),
            (
                good.replace("\"accesses\": []", "\"accesses\": [3]"),
                "p.sites: damaged site profile: site T in f (0): `accesses` are not of 0 survivors",
            ),
        ] {
            let error = Profile::parse("p.sites", &text).unwrap_err().to_string();
            assert!(error.starts_with(says) && !error.contains('\n'), "{error}");
        }
        let twice = profile([site("f", Counts::default()), site("f", Counts::default())]);
        let error = Profile::parse("p", &twice.text()).unwrap_err().to_string();
        assert!(error.contains("T in f (0): it is there twice"), "{error}");
        let error = Profile::read(Path::new("none.sites"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("none.sites: ") && error.contains("varve profile"),
            "{error}"
        );
    }

    proptest! {
        /// Whatever a file holds, reading it ends in a profile or an error.
        #[test]
        fn any_text_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let good = profile([site("f", Counts { objects: 3, survivors: 2, accesses: vec![1, 1], ..Counts::default() })]);
            let mut text = good.text().into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            if let Ok(text) = String::from_utf8(text)
                && let Ok(read) = Profile::parse("p", &text)
            {
                prop_assert_eq!(Profile::parse("p", &read.text()).unwrap(), read);
            }
        }
    }
}
