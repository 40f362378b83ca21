//! A module's description of its classes beside their types: the custom section `varve.classes`, which the compiler's plugin in `programs/api`
//! writes. Durable objects are known by the names of their classes and fields; names made by a compiler may be numbered over the whole program.
//!
//! ```text
//! class  TYPE  FIELD...       fields as the class declares them, in the order of the struct; FIELD:char for characters
//! was    TYPE  OLD...         former names of a class
//! field  TYPE  FIELD OLD...   former names of a field
//! line   TYPE  FILE:LINE      where a closure stands
//! name   TYPE  NAME           the stable name of a class that has a number for a name
//! final  TYPE  FIELD...       static fields that are never assigned again
//! keeps  TYPE                 objects of the class can be in a region: all is there that can be called on them
//! ```
//!
//! Words are separated by tabulators. Lines of other kinds are for others.

use crate::module::ModuleInner;
use std::collections::{HashMap, HashSet};
use varve_durable::Renamed;
use varve_durable::evolve::{each_class, without_number};

/// The section's name.
const SECTION: &str = "varve.classes";

/// A module's description of its classes.
#[derive(Default)]
pub(super) struct Classes {
    /// Whether it says anything.
    pub said: bool,
    /// Fields by class, each with whether it is a character.
    fields: HashMap<String, Vec<(String, bool)>>,
    /// Old names, of classes and fields by their names now.
    pub renamed: Vec<Renamed>,
    lines: HashMap<String, String>,
    names: HashMap<String, String>,
    /// Static fields that are never assigned again, as `TYPE#FIELD`.
    pub finals: HashSet<String>,
    /// Classes of which all is there that can be called on their objects; empty if the module does not say.
    keeps: HashSet<String>,
    /// The same in their order.
    pub kept: Vec<String>,
}

impl Classes {
    pub fn of(module: &ModuleInner) -> Classes {
        let mut sections = module.custom.iter().filter(|(name, _)| name == SECTION);
        let text = sections
            .next()
            .map(|(_, range)| &module.bytes[range.clone()]);
        text.map_or_else(Classes::default, |bytes| {
            Classes::read(&String::from_utf8_lossy(bytes))
        })
    }

    fn read(text: &str) -> Classes {
        let mut classes = Classes {
            said: true,
            ..Classes::default()
        };
        for line in text.lines() {
            let mut words = line.split('\t');
            let (Some(kind), Some(class)) = (words.next(), words.next()) else {
                continue;
            };
            let class = class.to_string();
            match kind {
                "class" => {
                    let field = |word: &str| match word.strip_suffix(":char") {
                        Some(name) => (name.to_string(), true),
                        None => (word.to_string(), false),
                    };
                    classes.fields.insert(class, words.map(field).collect());
                }
                "was" => {
                    let was = words.map(|was| (None, was));
                    classes.add_renamed(&class, was);
                }
                "field" => {
                    if let Some(field) = words.next() {
                        classes.add_renamed(&class, words.map(|was| (Some(field), was)));
                    }
                }
                "final" => classes
                    .finals
                    .extend(words.map(|field| format!("{class}#{field}"))),
                "keeps" => {
                    classes.kept.push(class.clone());
                    classes.keeps.insert(class);
                }
                "line" => drop(
                    words
                        .next()
                        .map(|at| classes.lines.insert(class, at.into())),
                ),
                "name" => drop(
                    words
                        .next()
                        .map(|name| classes.names.insert(class, name.into())),
                ),
                _ => {}
            }
        }
        // Regions that were made before such classes had names know them by their numbers.
        let numbers = classes.names.iter().map(|(number, name)| Renamed {
            class: name.clone(),
            field: None,
            was: number.clone(),
        });
        let mut numbers: Vec<Renamed> = numbers.collect();
        numbers.sort_by(|a, b| a.was.cmp(&b.was));
        for renamed in &mut classes.renamed {
            renamed.class = known_as(&classes.names, &renamed.class);
        }
        classes.renamed.append(&mut numbers);
        let constants = classes.renamed_constants();
        classes.renamed.extend(constants);
        classes
    }

    /// Classes that are constants' own are renamed with the constants, under all names that the enumeration had.
    fn renamed_constants(&self) -> Vec<Renamed> {
        let mut all = Vec::new();
        for r in &self.renamed {
            let own = r.field.as_ref().map(|field| format!("{}.{field}", r.class));
            let Some(own) = own.filter(|own| self.names.values().any(|n| n == own)) else {
                continue;
            };
            let before = self
                .renamed
                .iter()
                .filter(|b| b.field.is_none() && b.class == r.class);
            for enumeration in before.map(|b| &b.was).chain([&r.class]) {
                all.push(Renamed {
                    class: own.clone(),
                    field: None,
                    was: format!("{enumeration}.{}", r.was),
                });
            }
        }
        all
    }

    fn add_renamed<'a>(
        &mut self,
        class: &str,
        old: impl Iterator<Item = (Option<&'a str>, &'a str)>,
    ) {
        self.renamed.extend(old.map(|(field, was)| Renamed {
            class: class.to_string(),
            field: field.map(str::to_string),
            was: was.to_string(),
        }));
    }

    /// The stable name of a type or a constant whose name contains classes.
    pub fn known_as(&self, name: &str) -> String {
        known_as(&self.names, name)
    }

    /// The reason why objects of a class must not be in a region, if another version of the program could not use them as this one does.
    pub fn left_out(&self, class: &str) -> Option<String> {
        let is_class = !class.is_empty() && !class.contains(['@', '<']);
        (!self.keeps.is_empty() && is_class && !self.keeps.contains(class)).then(|| {
            "it belongs to one run of a program, or the compiler left out some of its methods: keep its values in an object of another class".into()
        })
    }

    /// Where a closure stands.
    pub fn line(&self, class: &str) -> Option<&str> {
        self.lines.get(class).map(String::as_str)
    }

    /// Names of the fields that a class declares itself, and whether they are characters; `made` are those that the compiler gave them.
    pub fn fields(&self, class: &str, made: &[String]) -> Vec<(String, bool)> {
        let said = self.fields.get(class).map_or(&[][..], Vec::as_slice);
        // A runtime may have fields of its own, after the class's.
        let agrees = said.len() <= made.len()
            && said.iter().zip(made).all(|((name, _), made)| {
                !name.is_ascii() || made == name || without_number(made) == name
            });
        let said = if agrees { said } else { &[] };
        let mut all = said.to_vec();
        for made in &made[said.len()..] {
            // If the name is ambiguous, the order of the two decides.
            let base = without_number(made);
            let mut name = base.to_string();
            let mut n = 0;
            while !base.is_empty() && all.iter().any(|(other, _)| *other == name) {
                n += 1;
                name = format!("{base}#{n}");
            }
            all.push((name, false));
        }
        all
    }
}

fn known_as(names: &HashMap<String, String>, name: &str) -> String {
    match names.is_empty() {
        true => name.to_string(),
        false => each_class(name, |class| names.get(class).map(String::as_str)),
    }
}

/// Why objects of a class must not be in a region, if its name may be another class's in the next version of the program.
pub(super) fn unstable(
    name: &str,
    classes: &Classes,
    all: &HashMap<String, u32>,
) -> Option<String> {
    // The library that a compiler brings along is the same until that is another one.
    if name.starts_with("java.") || name.starts_with("org.teavm.") {
        return None;
    }
    let remedy = "make it a class with a name";
    if is_closure(name) {
        let at = classes
            .line(name)
            .map_or(String::new(), |line| format!(" in {line}"));
        return Some(format!(
            "it is a lambda or a method reference{at}, which has only a number, and may be another one in the next version of the program: {remedy}"
        ));
    }
    let twins = local_name(name).and_then(|local| all.get(&local)).copied();
    (twins > Some(1)).then(|| {
        format!(
            "several classes within methods have this name there, and are told apart by their order alone: {remedy} of its own"
        )
    })
}

/// Whether a class is one that the compiler made for a lambda: `Main$run$lambda$_3_0`.
fn is_closure(name: &str) -> bool {
    let Some((_, numbers)) = name.rsplit_once("$lambda$_") else {
        return false;
    };
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    numbers
        .split_once('_')
        .is_some_and(|(a, b)| is_number(a) && is_number(b))
}

/// The name of a class within a method without its number: `Main$1Point` is `Main$Point` with a number.
pub(super) fn local_name(name: &str) -> Option<String> {
    let (owner, local) = name.rsplit_once('$')?;
    let digits = local.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && digits < local.len()).then(|| format!("{owner}$ {}", &local[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fields: Vec<(String, bool)>) -> Vec<String> {
        fields.into_iter().map(|f| f.0).collect()
    }

    fn made(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| n.to_string()).collect()
    }

    #[test]
    fn fields_have_the_names_of_the_source_or_none_that_a_compiler_counted() {
        let classes = Classes::read("class\ta.B\tversion\ta_0:char\n");
        assert_eq!(
            classes.fields("a.B", &made(&["version_3", "a_0", "nativeRef_1"])),
            [
                ("version".into(), false),
                ("a_0".into(), true),
                ("nativeRef".into(), false)
            ]
        );
        // A section that does not fit says nothing.
        assert_eq!(
            names(classes.fields("a.B", &made(&["size", "a_0_2"]))),
            ["size", "a_0"]
        );
        assert_eq!(
            names(classes.fields("a.C", &made(&["a_3", "a_0", "b"]))),
            ["a", "a#1", "b"]
        );
        assert_eq!(names(classes.fields("a.C", &made(&["", ""]))), ["", ""]);
    }

    #[test]
    fn lambdas_and_twins_are_unstable() {
        let classes = Classes::read("line\ta.B$main$lambda$_1_0\tB.java:7\n");
        let all = HashMap::from([("a.B$ Point".to_string(), 2), ("a.B$ One".to_string(), 1)]);
        let why = unstable("a.B$main$lambda$_1_0", &classes, &all).unwrap();
        assert!(
            why.contains("B.java:7") && why.contains("class with a name"),
            "{why}"
        );
        assert!(
            unstable("a.B$1Point", &classes, &all)
                .unwrap()
                .contains("several classes")
        );
        for stable in [
            "a.B$1One",
            "a.B$Point",
            "a.B",
            "java.util.X$y$lambda$_1_0",
            "a.B$lambda$_x",
        ] {
            assert_eq!(unstable(stable, &classes, &all), None, "{stable}");
        }
    }

    #[test]
    fn classes_without_a_name_are_known_by_another() {
        let classes = Classes::read("name\ta.S$1\ta.S.DONE\nwas\ta.S$1\tb.T\nnoise\n\n");
        assert_eq!(classes.known_as("Array<a.S$1>@vt"), "Array<a.S.DONE>@vt");
        assert_eq!(classes.known_as("a.S$1$2"), "a.S.DONE$2");
        assert_eq!(classes.known_as("a.S$10"), "a.S$10");
        let was: Vec<(&str, &str)> = classes
            .renamed
            .iter()
            .map(|r| (r.class.as_str(), r.was.as_str()))
            .collect();
        assert_eq!(was, [("a.S.DONE", "b.T"), ("a.S.DONE", "a.S$1")]);
        let text =
            "name\ta.S$1\ta.S.DONE\nfield\ta.S\tDONE\tOVER\nfield\ta.S\tOPEN\tNEW\nwas\ta.S\tb.T\n";
        let classes = Classes::read(text);
        let was: Vec<&str> = classes
            .renamed
            .iter()
            .filter(|r| r.class == "a.S.DONE")
            .map(|r| r.was.as_str())
            .collect();
        assert_eq!(was, ["a.S$1", "b.T.OVER", "a.S.OVER"]);
    }
}
