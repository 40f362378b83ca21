//! Profiles of Java programs in files. Frames stand in a table, since sites share most of them.

use super::{Ages, Frame, Heap, Profile, Sampling, Site};
use crate::file::{SitesFile, stack_of, with_zeros, without_zeros};
use crate::{AnySite, Counts, ProfileError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The rest of the file.
#[derive(Serialize, Deserialize)]
pub struct Rest {
    command: Vec<String>,
    heap: Heap,
    sampled: Sampling,
    lifetimes: Vec<(u64, u64)>,
    frames: Vec<Frame>,
    sites: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    /// Numbers of frames, innermost first.
    stack: Vec<usize>,
    class: String,
    #[serde(flatten)]
    ages: Ages,
    /// [`Counts`] without what is zero.
    #[serde(flatten)]
    counts: Map<String, Value>,
}

impl SitesFile for Profile {
    const KIND: &'static str = "java";
    type Site = Site;
    type Rest = Rest;

    fn program(&self) -> &str {
        &self.program
    }

    fn sites(&mut self) -> &mut Vec<Site> {
        &mut self.sites
    }

    fn rest(&self) -> Rest {
        let (mut frames, mut numbers) = (Vec::new(), HashMap::new());
        let mut sites: Vec<&Site> = self.sites.iter().collect();
        sites.sort_by(|a, b| (&a.stack, &a.class).cmp(&(&b.stack, &b.class)));
        let mut number = |frame: &Frame| {
            *numbers.entry(frame.clone()).or_insert_with(|| {
                frames.push(frame.clone());
                frames.len() - 1
            })
        };
        let line = |site: &&Site| Line {
            stack: site.stack.iter().map(&mut number).collect(),
            class: site.class.clone(),
            ages: site.ages.clone(),
            counts: without_zeros(&site.counts),
        };
        let sites = sites.iter().map(line).collect();
        Rest {
            command: self.command.clone(),
            heap: self.heap.clone(),
            sampled: self.sampled.clone(),
            lifetimes: self.lifetimes.clone(),
            frames,
            sites,
        }
    }

    fn of(program: String, rest: Rest) -> Result<Profile, String> {
        let site = |(number, line): (usize, Line)| {
            Ok(Site {
                stack: stack_of(line.stack, &rest.frames, number)?,
                class: line.class,
                counts: with_zeros(line.counts, number)?,
                ages: line.ages,
            })
        };
        let sites = rest.sites.into_iter().enumerate().map(site);
        Ok(Profile {
            program,
            command: rest.command,
            heap: rest.heap,
            sampled: rest.sampled,
            lifetimes: rest.lifetimes,
            sites: sites.collect::<Result<_, String>>()?,
        })
    }

    /// Of the heap's sizes the last run's hold.
    fn merge_rest(&mut self, other: &Profile) -> Result<(), ProfileError> {
        if self.heap.collector != other.heap.collector {
            return Err(ProfileError::Collectors {
                one: self.heap.collector.clone(),
                other: other.heap.collector.clone(),
            });
        }
        let before = std::mem::replace(&mut self.heap, other.heap.clone());
        for (sum, more) in [
            (&mut self.heap.young_collections, before.young_collections),
            (&mut self.heap.full_collections, before.full_collections),
            (&mut self.heap.paused_ms, before.paused_ms),
            (&mut self.heap.allocated_bytes, before.allocated_bytes),
            (&mut self.heap.kept_bytes, before.kept_bytes),
            (&mut self.heap.undecided_bytes, before.undecided_bytes),
            (&mut self.sampled.milliseconds, other.sampled.milliseconds),
            (&mut self.sampled.late, other.sampled.late),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.sampled.without_tlabs |= other.sampled.without_tlabs;
        self.sampled.thinned = self.sampled.thinned.max(other.sampled.thinned);
        self.sampled.interval_bytes = other.sampled.interval_bytes;
        let mut lifetimes: BTreeMap<u64, u64> = self.lifetimes.drain(..).collect();
        for &(end, bytes) in &other.lifetimes {
            let sum = lifetimes.entry(end).or_default();
            *sum = sum.saturating_add(bytes);
        }
        self.lifetimes = lifetimes.into_iter().collect();
        Ok(())
    }
}

impl AnySite for Site {
    type Key = (Vec<Frame>, String);

    fn key(&self) -> (Vec<Frame>, String) {
        (self.stack.clone(), self.class.clone())
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn add(&mut self, more: &Site) {
        self.counts.add(&more.counts);
        self.ages.add(&more.ages);
    }

    fn impossible(&self) -> Option<String> {
        impossible(&self.ages, &self.counts)
    }
}

/// Numbers that no run can have counted.
fn impossible(ages: &Ages, counts: &Counts) -> Option<String> {
    let parts = [
        ("old_objects", ages.old_objects, "objects", counts.objects),
        ("old_bytes", ages.old_bytes, "bytes", counts.bytes),
        (
            "old_freed_bytes",
            ages.old_freed_bytes,
            "old_bytes",
            ages.old_bytes,
        ),
        ("live_objects", ages.live_objects, "objects", counts.objects),
        ("live_bytes", ages.live_bytes, "bytes", counts.bytes),
    ];
    for (part, few, whole, many) in parts {
        if few > many {
            return Some(format!("{few} {part} of {many} {whole}"));
        }
    }
    (ages.survived.len().max(ages.died.len()) > 64)
        .then(|| "`survived` or `died` has more than 64 collections".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnyProfile;
    use proptest::prelude::*;

    fn whole() -> Profile {
        let frame = |line| Frame {
            class: "shop.Orders".into(),
            method: "order".into(),
            file: "Orders.java".into(),
            line,
        };
        let site = |stack: Vec<Frame>, class: &str| Site {
            stack,
            class: class.into(),
            counts: Counts {
                objects: 9,
                bytes: 900,
                samples: 3,
                survivors: 4,
                survived_bytes: 400,
                ..Counts::default()
            },
            ages: Ages {
                survived: vec![(4, 400), (2, 200)],
                died: vec![(5, 500)],
                old_objects: 2,
                old_bytes: 200,
                live_objects: 2,
                live_bytes: 200,
                ..Ages::default()
            },
        };
        Profile {
            program: "shop.Orders".into(),
            command: vec!["java".into(), "shop.Orders".into()],
            heap: Heap {
                java: 17,
                collector: "Serial".into(),
                tenuring: Some(5),
                ..Heap::default()
            },
            sampled: Sampling {
                interval_bytes: 512 << 10,
                ..Sampling::default()
            },
            lifetimes: vec![(1024, 500), (4096, 200)],
            sites: vec![
                site(vec![frame(24), frame(30)], "byte[]"),
                site(vec![frame(24)], "byte[]"),
                site(Vec::new(), ""),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = whole().text();
        let read = Profile::parse("p", &text).unwrap();
        assert_eq!(read.text(), text, "bytes do not change");
        let mut sorted = whole();
        sorted.sites.reverse();
        assert_eq!(read, sorted, "sites are in the order of their stacks");
        assert_eq!(
            text.matches("\"line\": 24").count(),
            1,
            "frames are there once"
        );
        assert!(
            !text.contains("peak_bytes"),
            "what is not counted is not there"
        );
        assert_eq!(
            AnyProfile::parse("p", &text).unwrap(),
            AnyProfile::Java(read)
        );
    }

    #[test]
    fn damage_is_named_in_one_line() {
        let good = whole().text();
        for (from, to, says) in [
            (
                "\"old_bytes\": 200",
                "\"old_bytes\": 901",
                "site 0: 901 old_bytes of 900 bytes",
            ),
            (
                "\"survivors\": 4",
                "\"survivors\": 10",
                "site 0: 10 survivors of 9 objects",
            ),
            ("\"java\": 17", "\"java\": -1", "damaged site profile: "),
            (
                "\"kind\": \"java\"",
                "\"kind\": \"managed\"",
                "a profile of a managed program",
            ),
            (
                "\"version\": 2",
                "\"version\": 9",
                "a site profile of version 9",
            ),
        ] {
            assert!(good.contains(from), "{good}");
            let error = Profile::parse("p.sites", &good.replace(from, to));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
        let lost = Profile::parse("p.sites", &good.replace("\"stack\": []", "\"stack\": [7]"));
        let error = lost.unwrap_err().to_string();
        assert!(error.contains("there is no frame 7"), "{error}");
        let native = crate::native::Profile::parse("p.sites", &good);
        let error = native.unwrap_err().to_string();
        assert!(error.contains("a profile of a java program"), "{error}");
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
