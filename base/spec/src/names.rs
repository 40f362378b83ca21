//! Names of things, lists of specifications, and the name that was meant.

use crate::Error;

/// In a list: everything that can be had here, with its defaults.
pub const ALL: &str = "all";

/// A specification as its name and the text of its parameters.
pub fn split(spec: &str) -> (&str, &str) {
    let (name, given) = spec.split_once(':').unwrap_or((spec, ""));
    (name.trim(), given.trim())
}

/// Whether a specification gives this parameter.
pub fn gives(spec: &str, key: &str) -> bool {
    let keys = split(spec).1.split(',').map(|part| part.split('='));
    keys.filter_map(|mut part| part.next())
        .any(|given| given.trim() == key)
}

/// A specification with another parameter behind those that it has; it takes the place of one of that name.
///
/// ```
/// assert_eq!(varve_spec::with("static", "seed", 3), "static:seed=3");
/// assert_eq!(varve_spec::with("gups:bytes=1GiB", "seed", 3), "gups:bytes=1GiB,seed=3");
/// assert_eq!(varve_spec::with("gups:seed=1,bytes=1GiB", "seed", 3), "gups:bytes=1GiB,seed=3");
/// assert!(varve_spec::gives("gups:reseed=1, seed = 3", "seed"));
/// assert!(!varve_spec::gives("gups:reseed=1", "seed"));
/// ```
pub fn with(spec: &str, key: &str, value: impl std::fmt::Display) -> String {
    let (name, given) = split(spec);
    let named = |part: &&str| part.split('=').next().is_some_and(|k| k.trim() == key);
    let others = given
        .split(',')
        .filter(|part| !part.is_empty() && !named(part));
    let parts: Vec<&str> = others.collect();
    let before = parts.join(",");
    let separator = if parts.is_empty() { "" } else { "," };
    format!("{name}:{before}{separator}{key}={value}")
}

/// The specifications in a list. A comma separates them; a part with `=` and without a name in front belongs to the
/// specification before it. So `dynamic:period=5ms,window=3,static` is two of them. A semicolon always separates.
///
/// ```
/// let list = varve_spec::list("dynamic:period=5ms,threads=1,static");
/// assert_eq!(list, ["dynamic:period=5ms,threads=1", "static"]);
/// ```
pub fn list(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for group in text.split(';') {
        // Nothing of a group belongs to what was before the semicolon.
        let first = all.len();
        let parts = group.split(',').map(str::trim).filter(|p| !p.is_empty());
        for part in parts {
            let is_parameter = part.find('=').is_some_and(|equals| {
                let colon = part.find(':').unwrap_or(part.len());
                equals < colon
            });
            match all[first..].last_mut() {
                Some(before) if is_parameter => {
                    let separator = if before.contains(':') { ',' } else { ':' };
                    before.push(separator);
                    before.push_str(part);
                }
                _ => all.push(part.into()),
            }
        }
    }
    all
}

/// The same, with `all` wherever it stands replaced by those of `able` that can be had here. What is there twice counts once.
pub fn expand(text: &str, able: &[&str]) -> Vec<String> {
    let mut expanded: Vec<String> = Vec::new();
    for spec in list(text) {
        let specs = match spec.as_str() {
            ALL => able.iter().map(|name| name.to_string()).collect(),
            _ => vec![spec],
        };
        for spec in specs {
            if !expanded.contains(&spec) {
                expanded.push(spec);
            }
        }
    }
    expanded
}

/// Among `entries`, the one that a specification names.
///
/// # Errors
/// If none is called so; the nearest name is suggested.
pub fn find<'e, E>(
    kind: &'static str,
    spec: &str,
    entries: &'e [E],
    name_of: impl Fn(&E) -> &'static str,
) -> Result<&'e E, Error> {
    let (name, _) = split(spec);
    let found = entries.iter().find(|entry| name_of(entry) == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = entries.iter().map(name_of).collect();
        Error::Unknown {
            kind,
            name: name.into(),
            known: shown(&known),
            meant: nearest(name, known).map(String::from),
        }
    })
}

/// Names in a sentence: all of a few, and some of many.
fn shown(names: &[&str]) -> String {
    /// More than that are not read.
    const MOST: usize = 12;
    match names.len() {
        all if all > MOST => format!(
            "{} and {} more",
            names[..MOST / 2].join(", "),
            all - MOST / 2
        ),
        _ => names.join(", "),
    }
}

/// The known name that is nearest to a mistyped one, if one is near.
pub fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let letters = word.chars().count();
    let near = known.into_iter().filter_map(|name| {
        let distance = strsim::damerau_levenshtein(word, name);
        // Something of the word has to be left.
        let is_near = distance <= 1 + name.len() / 4 && distance < letters.max(name.len());
        is_near.then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_with_a_value_and_no_name_belongs_to_the_specification_before_it() {
        let cases: [(&str, &[&str]); 9] = [
            ("static", &["static"]),
            ("random, static ;dynamic", &["random", "static", "dynamic"]),
            (
                "dynamic:period=5ms,window=3,static",
                &["dynamic:period=5ms,window=3", "static"],
            ),
            ("a:x=1,y,b:z=2,w=3", &["a:x=1", "y", "b:z=2,w=3"]),
            ("a,x=1,y=2", &["a:x=1,y=2"]),
            ("a;x=1", &["a", "x=1"]),
            (
                "trays:hot=0x10+1GiB/8+4KiB,map=0+64GiB;channels",
                &["trays:hot=0x10+1GiB/8+4KiB,map=0+64GiB", "channels"],
            ),
            ("hints+pima:alpha=2,dram", &["hints+pima:alpha=2", "dram"]),
            (" ;, ", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(list(text), expected, "{text}");
        }
    }

    #[test]
    fn all_is_what_can_be_had_once_and_where_it_stands() {
        let able = ["dram", "slow"];
        assert_eq!(expand("all", &able), able);
        assert_eq!(
            expand("slow,all;slow:code=fast", &able),
            ["slow", "dram", "slow:code=fast"]
        );
        assert!(expand("", &able).is_empty());
    }

    #[test]
    fn the_nearest_name_is_suggested_only_if_something_of_it_was_written() {
        let known = ["kg-n", "kg-w", "pima", "slow", "n"];
        let near = |word| nearest(word, known);
        assert_eq!(near("kgn"), Some("kg-n"));
        assert_eq!(near("pmia"), Some("pima"));
        assert_eq!(near("Slow"), Some("slow"));
        assert_eq!(near("immortal"), None);
        assert_eq!(near("m"), None, "one letter is like any other");
        assert_eq!(near(""), None);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let error = find("toy", "bel:n=1", &["bell", "drum"], |name| name).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no toy is called `bel`; there are bell, drum (did you mean `bell`?)"
        );
        assert_eq!(
            find("toy", " drum : n=1", &["bell", "drum"], |name| name),
            Ok(&"drum")
        );
    }

    proptest::proptest! {
        #[test]
        fn a_list_that_is_put_together_again_says_the_same(text in "[a-c:=;,+ 0-9]{0,24}") {
            let once = list(&text);
            proptest::prop_assert_eq!(list(&once.join(";")), once);
        }
    }
}
