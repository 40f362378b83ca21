//! Profiles of native programs in files. Frames stand in a table, since sites share most of them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Frame, Inlined, Key, Module, Profile, Sampling, Site};
use crate::file::{SitesFile, stack_of, with_zeros, without_zeros};
use crate::{AnySite, Counts, ProfileError};

/// The rest of the file.
#[derive(Serialize, Deserialize)]
pub struct Rest {
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sampled: Option<Sampling>,
    modules: Vec<Module>,
    frames: Vec<Place>,
    sites: Vec<Line>,
}

/// A frame.
#[derive(Serialize, Deserialize)]
struct Place {
    /// Number in `modules`; none if the address belongs to no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    module: Option<usize>,
    offset: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inlined: Vec<Inlined>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Kind,
    /// [`Counts`] without what is zero.
    #[serde(flatten)]
    counts: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Kind {
    Heap { stack: Vec<usize> },
    Mapping { stack: Vec<usize> },
    Static { module: usize, symbol: String },
    Stacks,
    Rest,
}

/// Numbers modules and frames as sites come to name them.
#[derive(Default)]
struct Tables {
    modules: Vec<Module>,
    module_numbers: HashMap<(String, String), usize>,
    frames: Vec<Place>,
    frame_numbers: HashMap<Frame, usize>,
}

impl Tables {
    fn add(&mut self, module: Module) -> usize {
        let key = (module.name.clone(), module.build_id.clone());
        *self.module_numbers.entry(key).or_insert_with(|| {
            self.modules.push(module);
            self.modules.len() - 1
        })
    }

    fn module(&mut self, name: &str, build_id: &str) -> usize {
        self.add(Module {
            name: name.into(),
            build_id: build_id.into(),
            path: String::new(),
        })
    }

    fn frame(&mut self, frame: &Frame) -> usize {
        if let Some(&number) = self.frame_numbers.get(frame) {
            return number;
        }
        let has_module = !(frame.module.is_empty() && frame.build_id.is_empty());
        let place = Place {
            module: has_module.then(|| self.module(&frame.module, &frame.build_id)),
            offset: frame.offset,
            function: frame.function.clone(),
            within: frame.within,
            line: frame.line.clone(),
            inlined: frame.inlined.clone(),
        };
        self.frames.push(place);
        let number = self.frames.len() - 1;
        self.frame_numbers.insert(frame.clone(), number);
        number
    }

    fn key(&mut self, key: &Key) -> Kind {
        let mut stack = |stack: &[Frame]| stack.iter().map(|frame| self.frame(frame)).collect();
        match key {
            Key::Heap(frames) => Kind::Heap {
                stack: stack(frames),
            },
            Key::Mapping(frames) => Kind::Mapping {
                stack: stack(frames),
            },
            Key::Static {
                module,
                build_id,
                symbol,
            } => Kind::Static {
                module: self.module(module, build_id),
                symbol: symbol.clone(),
            },
            Key::Stacks => Kind::Stacks,
            Key::Rest => Kind::Rest,
        }
    }
}

impl SitesFile for Profile {
    const KIND: &'static str = "native";
    type Site = Site;
    type Rest = Rest;

    fn program(&self) -> &str {
        &self.program
    }

    fn sites(&mut self) -> &mut Vec<Site> {
        &mut self.sites
    }

    fn rest(&self) -> Rest {
        let mut tables = Tables::default();
        for module in &self.modules {
            tables.add(module.clone());
        }
        let mut sites: Vec<&Site> = self.sites.iter().collect();
        sites.sort_by(|a, b| a.key.cmp(&b.key));
        let line = |site: &Site| Line {
            key: tables.key(&site.key),
            counts: without_zeros(&site.counts),
        };
        let sites = sites.into_iter().map(line).collect();
        Rest {
            command: self.command.clone(),
            machine: self.machine.clone(),
            sampled: self.sampled.clone(),
            modules: tables.modules,
            frames: tables.frames,
            sites,
        }
    }

    fn of(program: String, rest: Rest) -> Result<Profile, String> {
        let frames = frames(&rest)?;
        let site = |(number, line): (usize, Line)| {
            Ok(Site {
                key: key(line.key, &rest.modules, &frames, number)?,
                counts: with_zeros(line.counts, number)?,
            })
        };
        let sites = rest.sites.into_iter().enumerate().map(site);
        Ok(Profile {
            program,
            command: rest.command,
            machine: rest.machine,
            sampled: rest.sampled,
            sites: sites.collect::<Result<_, String>>()?,
            modules: rest.modules,
        })
    }

    fn merge_rest(&mut self, other: &Profile) -> Result<(), ProfileError> {
        if self.machine != other.machine {
            return Err(ProfileError::Machines {
                one: self.machine.clone(),
                other: other.machine.clone(),
            });
        }
        match (&mut self.sampled, &other.sampled) {
            (None, None) => {}
            (Some(sum), Some(more)) => {
                sum.looks += more.looks;
                sum.milliseconds += more.milliseconds;
                let new = more.blind.iter().filter(|line| !sum.blind.contains(line));
                let new: Vec<String> = new.cloned().collect();
                sum.blind.extend(new);
            }
            _ => return Err(ProfileError::Sampled),
        }
        for module in &other.modules {
            if !self.modules.contains(module) {
                self.modules.push(module.clone());
            }
        }
        Ok(())
    }
}

impl AnySite for Site {
    type Key = Key;

    fn key(&self) -> Key {
        self.key.clone()
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn add(&mut self, more: &Site) {
        self.counts.add(&more.counts);
    }
}

fn frames(read: &Rest) -> Result<Vec<Frame>, String> {
    let frame = |(number, place): (usize, &Place)| {
        let module = match place.module {
            None => Module::default(),
            Some(at) => match read.modules.get(at) {
                Some(module) => module.clone(),
                None => {
                    return Err(format!(
                        "frame {number} is in module {at}, of which there is none"
                    ));
                }
            },
        };
        Ok(Frame {
            module: module.name,
            build_id: module.build_id,
            offset: place.offset,
            function: place.function.clone(),
            within: place.within,
            line: place.line.clone(),
            inlined: place.inlined.clone(),
        })
    };
    read.frames.iter().enumerate().map(frame).collect()
}

fn key(kind: Kind, modules: &[Module], frames: &[Frame], number: usize) -> Result<Key, String> {
    let stack = |numbers| stack_of(numbers, frames, number);
    Ok(match kind {
        Kind::Heap { stack: numbers } => Key::Heap(stack(numbers)?),
        Kind::Mapping { stack: numbers } => Key::Mapping(stack(numbers)?),
        Kind::Static { module, symbol } => {
            let at = modules.get(module);
            let at = at.ok_or(format!("site {number}: there is no module {module}"))?;
            Key::Static {
                module: at.name.clone(),
                build_id: at.build_id.clone(),
                symbol,
            }
        }
        Kind::Stacks => Key::Stacks,
        Kind::Rest => Key::Rest,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{frame, profile, site};
    use super::*;
    use crate::AnyProfile;
    use proptest::prelude::*;

    fn whole() -> Profile {
        let counts = Counts {
            objects: 3,
            bytes: 300,
            reads: 9,
            writes: 8,
            peak_bytes: 200,
            freed: 2,
            lifetime_bytes: 5000,
            misses: 7,
            write_misses: 6,
            fast_ns: 5,
            slow_ns: 40,
            ..Counts::default()
        };
        let inlined = Frame {
            line: Some("a.cc:7".into()),
            inlined: vec![Inlined {
                function: "grow".into(),
                line: Some("a.h:3".into()),
            }],
            ..frame("make(int)", 0x40)
        };
        let nowhere = Frame {
            offset: 0x7fff_0000,
            ..Frame::default()
        };
        profile([
            site(Key::Heap(vec![inlined.clone(), nowhere]), counts.clone()),
            site(Key::Heap(vec![inlined, frame("main", 0x80)]), counts),
            site(Key::Mapping(vec![frame("main", 0x90)]), Counts::default()),
            site(
                Key::Static {
                    module: "lib.so".into(),
                    build_id: String::new(),
                    symbol: "table".into(),
                },
                Counts::default(),
            ),
            site(Key::Stacks, Counts::default()),
            site(Key::Rest, Counts::default()),
        ])
    }

    #[test]
    fn what_is_written_is_read_to_the_last_line_number() {
        let text = whole().text();
        let read = Profile::parse("p", &text).unwrap();
        let modules = vec![
            whole().modules[0].clone(),
            Module {
                name: "lib.so".into(),
                ..Module::default()
            },
        ];
        assert_eq!(read.modules, modules, "a library that only a site names");
        assert_eq!(read.sites, Profile { modules, ..whole() }.sites);
        assert_eq!(
            read.sites[0].key.stack()[0].inlined[0].line.as_deref(),
            Some("a.h:3")
        );
        assert_eq!(read.text(), text, "bytes do not change");
        assert!(
            !text.contains("survivors"),
            "what is not counted is not there"
        );
        assert_eq!(
            text.matches("make(int)").count(),
            1,
            "frames are there once"
        );
        assert_eq!(
            AnyProfile::parse("p", &text).unwrap(),
            AnyProfile::Native(read)
        );
    }

    #[test]
    fn how_samples_were_taken_is_read_again() {
        let counts = Counts {
            objects: 9,
            samples: 3,
            uses: 2,
            ..Counts::default()
        };
        let sampled = Profile {
            sampled: Some(Sampling {
                source: "pages".into(),
                looks: 7,
                milliseconds: 350,
                blind: vec!["caches".into()],
            }),
            ..profile([site(Key::Stacks, counts)])
        };
        let text = sampled.text();
        assert_eq!(Profile::parse("p", &text).unwrap(), sampled);
        assert!(
            !whole().text().contains("sampled"),
            "an exact profile is as it was"
        );
    }

    #[test]
    fn damage_is_named_in_one_line() {
        let good = profile([site(Key::Heap(vec![frame("f", 1)]), Counts::default())]).text();
        let bad = |from: &str, to: &str| {
            assert!(good.contains(from), "{good}");
            let error = Profile::parse("p.sites", &good.replace(from, to))
                .unwrap_err()
                .to_string();
            assert!(!error.contains('\n'), "{error}");
            error
        };
        assert!(bad("\"module\": 0", "\"module\": 9").contains("frame 0 is in module 9"));
        assert!(
            bad("\"kind\": \"heap\"", "\"kind\": \"heap\", \"freed\": 1")
                .contains("site 0: 1 freed of 0 objects")
        );
        assert!(
            bad("\"kind\": \"heap\"", "\"kind\": \"heap\", \"reads\": -1").contains("site 0: ")
        );
        assert!(bad("\"kind\": \"heap\"", "\"kind\": \"pile\"").contains("pile"));
        assert!(
            bad("\"kind\": \"native\"", "\"kind\": \"managed\"")
                .contains("a profile of a managed program")
        );
        let twice = profile([
            site(Key::Rest, Counts::default()),
            site(Key::Rest, Counts::default()),
        ]);
        let error = Profile::parse("p.sites", &twice.text())
            .unwrap_err()
            .to_string();
        assert!(error.contains("site 1: it is there twice"), "{error}");
    }

    proptest! {
        /// Whatever a file holds, reading it ends in a profile or an error.
        #[test]
        fn any_text_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut text = whole().text().into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            if let Ok(text) = String::from_utf8(text)
                && let Ok(read) = Profile::parse("p", &text)
            {
                let again = Profile::parse("p", &read.text()).unwrap();
                prop_assert_eq!(again.text(), read.text());
            }
        }
    }
}
