//! Johnny Cache (Lepers & Zwaenepoel, OSDI 2023): page placement under a DRAM cache against migration between
//! nodes. Claims D5 to D14.
//!
//! One machine (`optane-6230`, one socket, as the paper uses it) in both its modes. Runs are made at a fraction of
//! full size: capacities, pages and fixed costs shrink together, the number of pages and bins stays.

mod bc;
mod compare;
mod cooling;
mod costs;
mod gups;
mod large;
mod nas;
mod setup;
mod stores;

use crate::claim;
use crate::plan::Plan;
use crate::{StudyOptions, Watch};
use setup::Setup;
use varve_report::{StudyResult, Value};
use varve_run::{Error, VERSION};

pub fn run(options: &StudyOptions, watch: Watch) -> Result<StudyResult, Error> {
    let setup = Setup::new(options)?;
    let mut plan = Plan::default();
    gups::plan(&setup, &mut plan)?;
    large::plan(&setup, &mut plan)?;
    bc::plan(&setup, &mut plan);
    stores::plan(&setup, &mut plan);
    nas::plan(&setup, &mut plan);
    costs::plan(&setup, &mut plan)?;
    let results = plan.make(options, watch)?;
    let mut out = StudyResult::new("johnny-cache", "optane-6230", options.seed, VERSION);
    out.title = "Johnny Cache: page placement without conflicts".into();
    out.about = vec![
        format!(
            "GUPS, key-value store and transactions at 1/{}, graphs and NAS kernels at 1/{} of full size; all numbers \
             are given at full size.",
            setup.scale, setup.apps_scale
        ),
        "100 % is GUPS with all hot data placed in DRAM by an oracle, as in the paper.".into(),
    ];
    if options.wants("D11") && !setup.quick() {
        let also = format!(
            "CG.E, and MG.E with caches that hold rows, at 1/{}.",
            nas::COARSE
        );
        out.about.push(also);
    }
    gups::claims(&setup, &results, &mut out);
    large::claims(&setup, &results, &mut out)?;
    bc::claims(&setup, &results, &mut out);
    stores::claims(&setup, &results, &mut out);
    nas::claims(&setup, &results, &mut out);
    costs::claims(&setup, &results, &mut out)?;
    out.claims.retain(|c| options.wants(&c.id));
    if setup.quick() {
        for c in out
            .claims
            .iter_mut()
            .filter(|c| c.ours == Value::Missing && c.note.is_empty())
        {
            c.note = "not in the coarse version".into();
        }
    }
    for (name, why) in results.failures() {
        out.failures.push(format!("the run {name} failed: {why}"));
    }
    Ok(out)
}
