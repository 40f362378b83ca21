//! The part of a run's memory that a profile knows, with notes if it is small; profiles of another build.

use super::{Groups, LiveBytes};
use crate::Error;
use varve_sites::Counts;
use varve_sites::native::{Key, Profile, stale};

/// The part of its memory that a profile must know of a program, %.
const LEAST: f64 = 50.0;

/// A profile for the decisions of plans.
pub struct Known<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Whether it is of another build, whose functions have other addresses.
    pub stale: bool,
    /// Treatment of memory that it does not know, in words for notes.
    pub otherwise: &'a str,
}

impl Known<'_> {
    /// The stacks of a run as sites of the profile, with their counts in it; refused if the profile knows less than
    /// half of the memory.
    /// Notes about that go into `notes`. Peaks are scaled by the ratio of the sites' memory in the run to that in the profile, which
    /// may be of another input.
    pub fn of(
        &self,
        keys: &[Key],
        stacks: &[Counts],
        live: &LiveBytes,
        notes: &mut Vec<String>,
    ) -> Result<(Groups, Vec<Counts>), Error> {
        let exact = Groups::by_profile(keys, self.profile);
        let (groups, several) = match self.stale {
            true => Groups::by_name(keys, self.profile),
            false => (exact, 0),
        };
        let percent = self.unknown(&groups, stacks);
        if percent > 100.0 - LEAST {
            return Err(Error::Asked(self.refusal(keys, percent)));
        }
        if self.stale {
            notes.push(format!(
                "The profile knows by its functions' names who allocated {:.1} % of the memory here; {several} call stacks may be of \
                 several sites, and are {}.",
                100.0 - percent,
                self.otherwise
            ));
        } else if percent >= 0.1 {
            notes.push(format!(
                "The profile does not know who allocated {percent:.1} % of the memory here; that memory is {}.",
                self.otherwise
            ));
        }
        let then: u64 = self.profile.sites.iter().map(|s| s.counts.peak_bytes).sum();
        let now = groups.sum(stacks, live);
        let now: u64 = now.iter().map(|counts| counts.peak_bytes).sum();
        let ratio = now as f64 / then.max(1) as f64;
        let counts = self.profile.sites.iter().map(|site| Counts {
            peak_bytes: (site.counts.peak_bytes as f64 * ratio) as u64,
            ..site.counts.clone()
        });
        Ok((groups, counts.chain([Counts::default()]).collect()))
    }

    /// The part of the memory of which it knows nothing, %.
    fn unknown(&self, groups: &Groups, stacks: &[Counts]) -> f64 {
        let last = self.profile.sites.len() as u32;
        let (mut bytes, mut unknown) = (0, 0);
        for (&group, counts) in groups.of.iter().zip(stacks) {
            bytes += counts.peak_bytes;
            unknown += if group == last { counts.peak_bytes } else { 0 };
        }
        100.0 * unknown as f64 / bytes.max(1) as f64
    }

    fn refusal(&self, keys: &[Key], percent: f64) -> String {
        let of = self.profile.command.join(" ");
        let lacks = format!(
            "the profile is of `{of}` and does not know who allocated {percent:.0} % of the memory here"
        );
        let anew = "make a new one with `varve profile -o FILE.sites -- COMMAND`";
        if !self.stale {
            return format!(
                "{lacks}: it is of another program, or of another build of it: {anew}, or go by the names of functions with --stale"
            );
        }
        let profiled = self.profile.sites.iter().map(|site| &site.key);
        let mut nameless = stale::nameless(profiled);
        nameless.extend(stale::nameless(keys));
        nameless.sort_unstable();
        nameless.dedup();
        match nameless.is_empty() {
            true => format!("{lacks}, by the names of functions either: {anew}"),
            false => format!(
                "{lacks}, since {} has no function names, by which --stale finds sites (it is stripped): {anew}",
                nameless.join(" and ")
            ),
        }
    }
}
