//! Which policies, plans and workloads there are.

use pyo3::prelude::*;
use varve_observed::registry::{self, Listed};
use varve_spec::{Param, all_params};

/// A name, what it is, its parameters (key, default and what it is), and whose it is.
type Item = (String, String, Vec<(String, String, String)>, String);

fn item(name: &str, about: &str, params: &[Param], whose: &str) -> Item {
    let of = |p: &Param| (p.key.into(), p.default.into(), p.about.into());
    (
        name.into(),
        about.into(),
        params.iter().map(of).collect(),
        whose.into(),
    )
}

fn placement(p: &Listed) -> Item {
    item(p.name, p.about, &p.params, p.kind.whose())
}

/// Page policies.
#[pyfunction]
pub fn policies() -> Vec<Item> {
    registry::page_policies().iter().map(placement).collect()
}

/// Plans for objects, sites, generations and pages.
#[pyfunction]
pub fn plans() -> Vec<Item> {
    registry::plans().iter().map(placement).collect()
}

/// Workloads.
#[pyfunction]
pub fn workloads() -> Vec<Item> {
    let all = varve_workloads::list();
    let common = varve_workloads::registry::COMMON;
    all.iter()
        .map(|w| item(w.name, w.about, &all_params(w.params, common), ""))
        .collect()
}
