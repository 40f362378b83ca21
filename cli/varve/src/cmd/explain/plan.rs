//! A heap plan: where each kind of objects goes, by the plan's own answers.

use super::picture::{Memory, boxes};
use super::{Page, shown};
use crate::ui::{Failure, wrong};
use varve_heap::{Object, Origin as Where, Plan, Space, Tier};
use varve_runtime::plans;
use varve_sites::Profile;

pub fn explain(spec: &str) -> Result<String, Failure> {
    let entry = plans::entry(spec).map_err(wrong)?;
    let profile = Profile::default();
    let chosen = plans::by_name(spec, Some(&profile)).map_err(wrong)?;
    let (plan, name) = (&*chosen.plan, entry.name);
    let pictured = Pictured::of(plan, chosen.code);
    let mut notes = pictured.moves;
    if pictured.by_heat {
        notes.push(heat(entry.profile, plan.takes_hints()).into());
    }
    if entry.intervals {
        notes.push(
            "This is where objects are in the beginning. Then the program runs some intervals with its old objects in each memory, and they \
             stay where it pays."
                .into(),
        );
    }
    let code = &plans::CODE;
    let (tries, read) = match entry.profile {
        true => (
            format!(
                "varve run programs/dist/graph.wasm --profile FILE.sites \\\n             --machine optane-6242 --plan dram,{name} -- pagerank --scale 12"
            ),
            "docs/sites.md says how FILE.sites is made",
        ),
        false => (
            format!(
                "varve run programs/dist/graph.wasm --machine optane-6242 \\\n             --plan dram,{name} -- pagerank --scale 12"
            ),
            match entry.intervals {
                true => "docs/pima.md",
                false => "docs/policies.md, from \"Heap plans\" on",
            },
        ),
    };
    Ok(Page {
        about: format!("Heap plan {name}: {} ({}).", entry.about, entry.source),
        shows: "Where it puts a program's objects:".into(),
        picture: boxes(&pictured.memories),
        notes,
        params: entry
            .params
            .iter()
            .chain([code])
            .map(|p| shown(p.key, p.default, p.about))
            .collect(),
        tries,
        read: read.into(),
    }
    .to_string())
}

/// The source of objects' heat.
fn heat(profile: bool, hints: bool) -> &'static str {
    match (profile, hints) {
        (true, _) => {
            "Hot is what a site profile of an earlier run shows, by where in the program an object is made."
        }
        (_, true) => {
            "Hot is what the programmer marked, by where in the program an object is made."
        }
        _ => "Hot is what samples of the running program show.",
    }
}

/// The memories with what the plan puts there.
struct Pictured {
    memories: Vec<Memory>,
    /// Later migrations between memories.
    moves: Vec<String>,
    /// Whether anything depends on how hot an object is.
    by_heat: bool,
}

impl Pictured {
    fn of(plan: &dyn Plan, code: Tier) -> Pictured {
        let mut asked = Asked {
            plan,
            fast: Vec::new(),
            slow: Vec::new(),
            by_heat: false,
        };
        asked.put(plan.nursery(), "young objects (the nursery)".into());
        if let Some(tier) = plan.observer() {
            asked.put(
                tier,
                "survivors that are watched (the observer space)".into(),
            );
            asked.place(Where::Observer, false, "watched objects");
        } else {
            asked.place(Where::Nursery, false, "survivors");
        }
        asked.place(Where::Birth, true, "large objects");
        asked.put(plan.metadata(), "the collector's tables".into());
        asked.put(code, "compiled code".into());
        let moves = [Tier::FAST, Tier::SLOW].map(|tier| asked.moves(tier));
        let memory = |title: &str, holds| Memory {
            title: title.into(),
            holds,
        };
        Pictured {
            memories: vec![
                memory("fast memory (DRAM)", asked.fast),
                memory("slow memory (Optane, CXL)", asked.slow),
            ],
            moves: moves.into_iter().flatten().collect(),
            by_heat: asked.by_heat,
        }
    }
}

/// A plan that is asked, and its answers by memory.
struct Asked<'a> {
    plan: &'a dyn Plan,
    fast: Vec<String>,
    slow: Vec<String>,
    by_heat: bool,
}

impl Asked<'_> {
    fn put(&mut self, tier: Tier, what: String) {
        match tier {
            Tier::FAST => self.fast.push(what),
            _ => self.slow.push(what),
        }
    }

    /// The memory of an object.
    fn answer(&self, from: Where, large: bool, hot: bool, written: bool) -> Tier {
        let object = Object {
            from,
            large,
            hot,
            written,
            colour: 0,
        };
        match self.plan.place(object) {
            Space::Old(tier) => tier,
            // Watched first; where it goes then is asked for by itself.
            Space::Observer => self.plan.observer().unwrap_or(Tier::FAST),
        }
    }

    /// The properties of objects that the answer depends on, with the answer; unneeded words are left out.
    fn answers(&self, from: Where, large: bool) -> (Vec<(&'static str, Tier)>, bool) {
        let of = |hot, written| self.answer(from, large, hot, written);
        let watched = self.plan.monitors();
        let by_writes = watched && [false, true].iter().any(|&h| of(h, false) != of(h, true));
        let by_heat =
            of(false, false) != of(true, false) || watched && of(false, true) != of(true, true);
        let all = match (by_heat, by_writes) {
            (false, false) => vec![("", of(false, false))],
            (true, false) => vec![("hot", of(true, false)), ("other", of(false, false))],
            (false, true) => vec![
                ("written", of(false, true)),
                ("unwritten", of(false, false)),
            ],
            (true, true) => vec![
                ("hot written", of(true, true)),
                ("hot unwritten", of(true, false)),
                ("other written", of(false, true)),
                ("other unwritten", of(false, false)),
            ],
        };
        (all, by_heat)
    }

    fn place(&mut self, from: Where, large: bool, what: &str) {
        let (answers, by_heat) = self.answers(from, large);
        self.by_heat |= by_heat;
        for (which, tier) in answers {
            self.put(tier, format!("{which} {what}").trim_start().into());
        }
    }

    /// Which old objects of a memory leave it when everything is collected, in a sentence.
    fn moves(&self, tier: Tier) -> Option<String> {
        let (answers, _) = self.answers(Where::Old(tier), false);
        let leave: Vec<&str> = answers
            .iter()
            .filter(|a| a.1 != tier)
            .map(|a| a.0)
            .collect();
        let (from, to) = match tier {
            Tier::FAST => ("fast", "slow"),
            _ => ("slow", "fast"),
        };
        // A plan for which all of them are elsewhere has none there.
        (!leave.is_empty() && leave.len() < answers.len()).then(|| {
            format!(
                "When everything is collected, {} old objects move from {from} to {to} memory.",
                leave.join(" and ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(name: &str) -> (Vec<String>, Vec<String>) {
        let profile = Profile::default();
        let chosen = plans::by_name(name, Some(&profile)).unwrap();
        let mut memories = Pictured::of(&*chosen.plan, chosen.code).memories;
        let slow = memories.pop().unwrap().holds;
        (memories.pop().unwrap().holds, slow)
    }

    #[test]
    fn the_picture_is_what_the_plan_answers() {
        let (fast, slow) = holds("dram");
        assert!(slow.is_empty(), "{slow:?}");
        assert_eq!(fast.len(), 5);
        assert!(holds("slow").0.is_empty());
        assert_eq!(holds("kg-n").1, ["survivors", "large objects"]);
        let (fast, slow) = holds("kg-w");
        assert!(fast.contains(&"written watched objects".into()), "{fast:?}");
        assert!(
            slow.contains(&"unwritten watched objects".into()),
            "{slow:?}"
        );
        let (fast, slow) = holds("hints");
        assert!(fast.contains(&"hot survivors".into()), "{fast:?}");
        assert!(slow.contains(&"other survivors".into()), "{slow:?}");
        assert!(holds("kg-n:code=slow").1.contains(&"compiled code".into()));
    }

    #[test]
    fn every_plan_is_explained_on_half_a_screen() {
        for entry in plans::plans() {
            let text = explain(entry.name).unwrap_or_else(|_| panic!("{}", entry.name));
            let parameters = text.lines().filter(|l| l.starts_with("  ")).count();
            assert!(text.lines().count() - parameters <= 24, "{text}");
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
            assert!(
                text.contains("young objects") && text.contains("Read next: docs/"),
                "{text}"
            );
        }
    }
}
