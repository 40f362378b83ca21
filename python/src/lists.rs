//! Which policies, plans and workloads there are.

use pyo3::prelude::*;
use varve_pages::policies::SCALE;
use varve_runtime::plans as catalogue;
use varve_spec::{Param, all_params};

/// A name, what it is, and its parameters: key, default and what it is.
type Item = (String, String, Vec<(String, String, String)>);

fn item(name: &str, about: &str, params: &[Param]) -> Item {
    let of = |p: &Param| (p.key.into(), p.default.into(), p.about.into());
    (name.into(), about.into(), params.iter().map(of).collect())
}

/// Page policies.
#[pyfunction]
pub fn policies() -> Vec<Item> {
    let all = varve_pages::policies().iter();
    all.map(|p| item(p.name, p.about, &all_params(p.params, &[SCALE])))
        .collect()
}

/// Heap plans.
#[pyfunction]
pub fn plans() -> Vec<Item> {
    let all = catalogue::plans().iter();
    all.map(|p| item(p.name, p.about, &all_params(p.params, &[catalogue::CODE])))
        .collect()
}

/// Workloads.
#[pyfunction]
pub fn workloads() -> Vec<Item> {
    let all = varve_workloads::list();
    let common = varve_workloads::registry::COMMON;
    all.iter()
        .map(|w| item(w.name, w.about, &all_params(w.params, common)))
        .collect()
}
