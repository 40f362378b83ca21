//! SP against published values and slow, obvious solutions.

use super::super::flow::tests::apply_factor;
use super::super::lcg::Lcg;
use super::*;
use crate::harness::{self, Order};
use crate::loops::drain;

#[test]
fn the_three_factors_applied_to_the_update_give_the_right_hand_side() {
    let cube = Cube::new(9);
    let mut flow = Flow::new(cube, Lcg(SEED));
    flow.whole_rhs();
    let want = flow.rhs.clone();
    let mut line = Line::new(9);
    for axis in 0..3 {
        flow.rhs.iter_mut().for_each(|x| change(axis, x));
        (1..8).for_each(|plane| line.solve_plane(&mut flow, axis, plane));
    }
    flow.rhs.iter_mut().for_each(|x| change(3, x));
    let mut back = flow.rhs.clone();
    for axis in [2, 1, 0] {
        back = apply_factor(&flow, axis, true, &back);
    }
    for (i, j, k) in cube.inner() {
        let at = cube.at(i, j, k);
        for m in 0..5 {
            assert!((back[at][m] - want[at][m]).abs() < 1e-12, "{i} {j} {k} {m}");
        }
    }
}

#[test]
fn time_leads_to_the_exact_solution() {
    for threads in [1, 4] {
        let mut sp = program(&Setup::tiny(Class::S, 0, 0, threads, true)).unwrap();
        drain(&mut sp);
        let flow = sp.kernel.flow().unwrap();
        assert!(flow.error() < 1e-6, "{}", flow.error());
    }
}

#[test]
fn the_same_accesses_without_data_whatever_the_order() {
    let make = |real| program(&Setup::tiny(Class::S, 9, 2, 3, real)).unwrap();
    let tally = harness::assert_order_does_not_matter(|| Box::new(make(true)), u64::MAX);
    assert_eq!(
        harness::run(&mut make(false), Order::Random(1), u64::MAX),
        tally
    );
}
