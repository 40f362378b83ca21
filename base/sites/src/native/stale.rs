//! Sites of another build, by the names of functions: addresses move with every build, and names seldom do.
//!
//! A site is the chain of its functions, each with the file that it is in. Where two sites of a profile have one chain,
//! such as two calls of `malloc` in one function, the places within the functions tell them apart, if these are
//! still the same. Otherwise the match is ambiguous, and neither is taken.

use std::collections::{BTreeMap, HashMap};

use super::{Frame, Key, Profile, Site};

/// A frame in any build.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    /// The file's name without versions.
    file: String,
    function: String,
    /// None: wherever in the function.
    within: Option<u64>,
}

/// A site in any build.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Chain {
    Heap(Vec<Call>),
    Mapping(Vec<Call>),
    Static(String, String),
    Stacks,
    Rest,
}

/// The name of a library's file without its version: `libz.so.1.3` is `libz.so`.
pub fn file_stem(module: &str) -> &str {
    match module.find(".so.") {
        Some(at) => &module[..at + 3],
        None => module,
    }
}

/// The innermost `calls` of a site; `None` if a function has no name, or a requested place was not recorded.
fn chain(key: &Key, calls: usize, places: bool) -> Option<Chain> {
    let call = |frame: &Frame| {
        Some(Call {
            file: file_stem(&frame.module).into(),
            function: frame.function.clone()?,
            within: match places {
                true => Some(frame.within?),
                false => None,
            },
        })
    };
    let stack = |stack: &[Frame]| stack[..calls].iter().map(call).collect::<Option<Vec<_>>>();
    Some(match key {
        Key::Heap(frames) => Chain::Heap(stack(frames)?),
        Key::Mapping(frames) => Chain::Mapping(stack(frames)?),
        Key::Static { module, symbol, .. } => {
            Chain::Static(file_stem(module).into(), symbol.clone())
        }
        Key::Stacks => Chain::Stacks,
        Key::Rest => Chain::Rest,
    })
}

/// The result of a search by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The site of the profile with this number.
    Site(usize),
    /// It may be one of several.
    Several,
    /// No site is called so.
    Unknown,
}

/// The sites of a profile by name.
pub struct ByName {
    sites: HashMap<Chain, Found>,
}

impl ByName {
    /// Of all that have names.
    pub fn new(profile: &Profile) -> ByName {
        let mut sites = HashMap::new();
        for (number, Site { key, .. }) in profile.sites.iter().enumerate() {
            for places in [true, false] {
                let Some(chain) = chain(key, key.stack().len(), places) else {
                    continue;
                };
                let found = sites.entry(chain).or_insert(Found::Site(number));
                if *found != Found::Site(number) {
                    *found = Found::Several;
                }
            }
        }
        ByName { sites }
    }

    /// The site with most of a stack's innermost calls.
    pub fn find(&self, key: &Key) -> Found {
        for calls in (0..=key.stack().len()).rev() {
            for places in [true, false] {
                let found = chain(key, calls, places).and_then(|chain| self.sites.get(&chain));
                match found {
                    Some(Found::Site(number)) => return Found::Site(*number),
                    // places may tell more than two sites of one place can
                    Some(Found::Several) if !places => return Found::Several,
                    _ => {}
                }
            }
        }
        Found::Unknown
    }
}

/// The files of which no frame has a function's name: they are stripped.
pub fn nameless<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Vec<&'a str> {
    let mut named: BTreeMap<&str, bool> = BTreeMap::new();
    for frame in keys.into_iter().flat_map(Key::stack) {
        *named.entry(&frame.module).or_default() |= frame.function.is_some();
    }
    let nameless = named
        .into_iter()
        .filter(|(file, named)| !named && !file.is_empty());
    nameless.map(|(file, _)| file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;
    use crate::native::tests::{profile, site};

    /// A frame of a build, at an address and a place in its function.
    fn frame(build: &str, function: &str, offset: u64, within: u64) -> Frame {
        Frame {
            module: "libp.so.1.2".into(),
            build_id: build.into(),
            offset,
            function: Some(function.into()),
            within: Some(within),
            ..Frame::default()
        }
    }

    fn stack(build: &str, calls: &[(&str, u64)], moved: u64) -> Key {
        let frame = |&(function, within): &(&str, u64)| {
            frame(build, function, 0x1000 + moved + within, within)
        };
        Key::Heap(calls.iter().map(frame).collect())
    }

    #[test]
    fn a_site_is_found_in_another_build_by_its_functions() {
        let old = |calls: &[(&str, u64)]| site(stack("aa", calls, 0), Counts::default());
        let names = ByName::new(&profile([
            old(&[("hot", 8)]),
            old(&[("twice", 8)]),
            old(&[("twice", 16)]),
            old(&[("make", 8), ("load", 5)]),
            old(&[("make", 8), ("store", 5)]),
            site(Key::Rest, Counts::default()),
        ]));
        let find = |calls: &[(&str, u64)]| names.find(&stack("bb", calls, 96));
        assert_eq!(find(&[("hot", 8), ("main", 3)]), Found::Site(0));
        assert_eq!(find(&[("hot", 99)]), Found::Site(0), "its code has changed");
        assert_eq!(find(&[("twice", 16)]), Found::Site(2), "the place tells");
        assert_eq!(find(&[("twice", 17)]), Found::Several);
        assert_eq!(
            find(&[("make", 9), ("store", 7), ("main", 1)]),
            Found::Site(4)
        );
        assert_eq!(
            find(&[("make", 8)]),
            Found::Unknown,
            "its callers are the site"
        );
        assert_eq!(find(&[("new", 8)]), Found::Unknown);
        assert_eq!(names.find(&Key::Rest), Found::Site(5));
        let Key::Heap(mut stripped) = stack("bb", &[("hot", 8)], 0) else {
            unreachable!()
        };
        stripped[0].function = None;
        let stripped = Key::Heap(stripped);
        assert_eq!(names.find(&stripped), Found::Unknown);
        let named = stack("bb", &[("f", 1)], 0);
        assert_eq!(nameless([&stripped]), ["libp.so.1.2"]);
        assert!(nameless([&stripped, &named]).is_empty());
        assert_eq!(file_stem("libz.so.1.3"), "libz.so");
        assert_eq!(file_stem("redis-server"), "redis-server");
    }
}
