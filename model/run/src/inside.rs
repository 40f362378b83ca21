//! A program among others on a model, whose own memory is placed: it chooses the memory of each address, and the pager
//! of all programs follows as far as there is room.

use crate::Error;
use crate::jvm::{self, Recorded};
use crate::objects;
use std::path::Path;
use varve_access::Program;
use varve_sites::{Counts, native};
use varve_trace::TraceProgram;

/// See the module.
pub struct PlacedMember {
    /// The program.
    pub program: Box<dyn Program>,
    /// Is the memory at an address to be fast?
    pub is_fast: Box<dyn Fn(u64) -> bool + Send>,
}

impl PlacedMember {
    /// A recorded Java program under a plan for generations.
    ///
    /// # Errors
    /// The trace cannot be read, or is not of a Java program whose generations are known.
    pub fn java(trace: &Path, plan: &str) -> Result<PlacedMember, Error> {
        let by = jvm::PLANS.find(plan)?.by;
        let Some(recorded) = Recorded::open(trace)? else {
            let trace = trace.display();
            return Err(Error::Java(format!(
                "{trace}: no Java virtual machine runs in it, so that there are no generations"
            )));
        };
        Ok(PlacedMember {
            program: Box::new(TraceProgram::open(trace)?),
            is_fast: Box::new(move |address| recorded.is_fast(&by, address)),
        })
    }

    /// A recorded native program whose objects are laid out by a profile and a plan for sites, with a limit of fast
    /// memory in bytes. It takes `bytes` in all; the profile's sites are scaled to that.
    ///
    /// # Errors
    /// The trace cannot be read, or the plan does not place by sites.
    pub fn native(
        trace: &Path,
        profile: &native::Profile,
        plan: &str,
        fast: u64,
        bytes: u64,
    ) -> Result<PlacedMember, Error> {
        let plan = objects::site_plan(plan)?;
        let all: u64 = profile.sites.iter().map(|s| s.counts.peak_bytes).sum();
        let ratio = bytes as f64 / all.max(1) as f64;
        let known: Vec<Counts> = profile
            .sites
            .iter()
            .map(|site| Counts {
                peak_bytes: (site.counts.peak_bytes as f64 * ratio) as u64,
                ..site.counts.clone()
            })
            .collect();
        let quotas = plan.by.quotas(&known, &known, fast).unwrap_or_default();
        let program = objects::placed(trace, profile, quotas, fast)?;
        Ok(PlacedMember {
            program,
            is_fast: Box::new(objects::is_fast),
        })
    }
}
