//! Application awareness on hybrid memory (Wang et al.): placement, threads and order of whole programs. Claims E5 to E12.
//!
//! ```text
//! alone.rs         E5, E11: the memory demands of programs, each alone
//! figure1.rs       E12: where that places them between latency and bandwidth
//! groups.rs        E6 to E9: groups under Linux and under each optimization
//! lengths.rs       E8, E9: the same groups with programs that run for longer
//! interference.rs  E10: every way of using memory beside every other
//! groups/          the groups
//! ```

mod alone;
mod figure1;
mod groups;
mod interference;
mod lengths;

use crate::claim;
use crate::{Effort, StudyOptions, StudyProgress, Watch};
use varve_jobs::compare::Making;
use varve_jobs::model::{ModelSpec, SCALE};
use varve_machine::model::RunError;
use varve_report::StudyResult;
use varve_run::{Error, VERSION};

pub fn run(options: &StudyOptions, watch: Watch) -> Result<StudyResult, Error> {
    let mut spec = ModelSpec::new(options.machine("optane-6230n")?);
    spec.seed = options.seed;
    spec.scale = match options.effort {
        Effort::Full => SCALE,
        Effort::Quick => 4 * SCALE,
        Effort::Tiny => 16 * SCALE,
    };
    let setup = Setup { options, spec };
    let tell = |what: &str| {
        let what = what.to_string();
        move |done, runs, now: &str| {
            let what = format!("{what}: {now}");
            watch(&StudyProgress { done, runs, what })
        }
    };
    let mut out = StudyResult::new("app-aware", "optane-6230n", options.seed, VERSION);
    out.title = "Whole programs on hybrid memory: placement, threads and order".into();
    out.about = about(setup.spec.scale);
    // Parts do not depend on each other: one that waits for other processes holds up none.
    let mut waits = None;
    let mut part = |made: Result<(), varve_jobs::Error>| match made.map_err(of_jobs) {
        Err(e @ Error::Elsewhere(_)) => {
            waits = Some(e);
            Ok(())
        }
        made => made,
    };
    if setup.wants(&["E5", "E11", "E12"]) {
        let tell = tell("alone");
        part(alone::claims(&setup, &setup.making(&tell), &mut out))?;
    }
    for group in groups::wanted(&setup) {
        let tell = tell(&group.name);
        part(groups::claims(
            &setup,
            &group,
            &setup.making(&tell),
            &mut out,
        ))?;
    }
    if setup.wants(&["E10"]) {
        let tell = tell("interference");
        part(interference::claims(&setup, &setup.making(&tell), &mut out))?;
    }
    if let Some(waits) = waits {
        return Err(waits);
    }
    out.claims
        .sort_by_key(|c| c.id[1..].parse::<u32>().unwrap_or(0));
    out.claims.retain(|c| options.wants(&c.id));
    Ok(out)
}

fn about(scale: u32) -> Vec<String> {
    vec![
        format!(
            "ocean_cp, lu_cb, lu_ncb and freqmine are kernels with the accesses of the programs at the suites' native sizes (lu_cb under \
             E8 has less, to end in time), written from their sources; those that are in figure 1 alone compute too. The others are \
             access patterns (`varve workload`), whose instructions are guesses. Sizes and times are divided by {scale}, and given at \
             full size again. Each takes some seconds, where the paper's take minutes: what moving pages costs is a larger part."
        ),
        "Inputs are the bandwidths that the paper prints of NPB/LU in DRAM (they come out again under E11). The documents that \
         freqmine mines are drawn, and how often ocean_cp relaxes is from its own sample output. Members of groups that the text \
         does not name are assumed; its figures cannot be read."
            .into(),
        "As in the paper, one program runs in each memory at a time, with eight threads; the group takes as long as the slower \
         memory's programs."
            .into(),
    ]
}

struct Setup<'a> {
    options: &'a StudyOptions,
    spec: ModelSpec,
}

impl Setup<'_> {
    fn wants(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.options.wants(id))
    }

    fn making<'m>(&'m self, watch: &'m (dyn Fn(usize, usize, &str) -> bool + Sync)) -> Making<'m> {
        Making {
            workers: self.options.workers,
            keep: &self.options.keep,
            watch,
        }
    }
}

fn of_jobs(e: varve_jobs::Error) -> Error {
    match e {
        varve_jobs::Error::Run(e) => e,
        other => RunError::Program(other.to_string()).into(),
    }
}
