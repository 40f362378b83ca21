//! FT against published values and slow, obvious solutions.

use super::*;
use crate::harness::{self, CallOrder};
use crate::loops::drain;

#[test]
fn class_s_checksums_are_the_published_ones() {
    // NPB verification values of class S.
    let published = [
        [5.546087004964e2, 4.845363331978e2],
        [5.546385409189e2, 4.865304269511e2],
        [5.546148406171e2, 4.883910722336e2],
        [5.545423607415e2, 4.901273169046e2],
        [5.544255039624e2, 4.917475857993e2],
        [5.542683411902e2, 4.932597244941e2],
    ];
    let mut ft = program(&NasSetup::tiny(Class::S, 0, 0, 3, true)).unwrap();
    drain(&mut ft);
    assert_eq!(ft.kernel.checksums().len(), published.len());
    for (ours, want) in ft.kernel.checksums().iter().zip(published) {
        for part in 0..2 {
            assert!(
                (ours[part] / want[part] - 1.0).abs() < 1e-10,
                "{ours:?} {want:?}"
            );
        }
    }
}

#[test]
fn class_w_checksums_are_the_published_ones() {
    // NPB verification values of class W, whose box is no cube, of the first and the last iteration.
    let mut ft = program(&NasSetup::tiny(Class::W, 0, 0, 2, true)).unwrap();
    drain(&mut ft);
    let published = [
        (0, [5.673612178944e2, 5.293246849175e2]),
        (5, [5.504159734538e2, 5.239212247086e2]),
    ];
    for (iteration, want) in published {
        let ours = ft.kernel.checksums()[iteration];
        assert!(
            (0..2).all(|part| (ours[part] / want[part] - 1.0).abs() < 1e-10),
            "{ours:?} {want:?}"
        );
    }
}

#[test]
fn the_transform_of_a_box_is_the_sum_that_defines_it_and_comes_back() {
    let n = [16, 32, 16];
    let mut data = Data::new(n, Lcg(SEED));
    let input = data.u1.clone();
    let along = |data: &mut Data, axis: usize, sign: f64| {
        let (outer, inner) = [(n[2], n[1]), (n[2], n[0]), (n[1], n[0])][axis];
        for outer in 0..outer {
            for first in (0..inner).step_by(PENCILS) {
                data.transform(n, axis, sign, outer, first);
            }
        }
    };
    [0, 1, 2]
        .into_iter()
        .for_each(|axis| along(&mut data, axis, 1.0));
    for (a, b, c) in [(0, 0, 0), (1, 2, 3), (15, 31, 7), (8, 16, 8)] {
        let mut want = [0.0; 2];
        for k in 0..n[2] {
            for j in 0..n[1] {
                for i in 0..n[0] {
                    let turns =
                        (a * i) as f64 / 16.0 + (b * j) as f64 / 32.0 + (c * k) as f64 / 16.0;
                    let (sin, cos) = (std::f64::consts::TAU * turns).sin_cos();
                    let term = times(input[row(n, j, k) + i], [cos, sin]);
                    want = [want[0] + term[0], want[1] + term[1]];
                }
            }
        }
        let ours = data.u0[row(n, b, c) + a];
        assert!(
            (0..2).all(|part| (ours[part] - want[part]).abs() < 1e-8),
            "{ours:?} {want:?}"
        );
    }
    data.u1 = data.u0.clone();
    [2, 1, 0]
        .into_iter()
        .for_each(|axis| along(&mut data, axis, -1.0));
    let points = (16 * 32 * 16) as f64;
    for (ours, want) in data.u1.iter().zip(&input) {
        assert!((0..2).all(|part| (ours[part] / points - want[part]).abs() < 1e-12));
    }
}

#[test]
fn the_same_accesses_without_data_whatever_the_order() {
    let make = |real| program(&NasSetup::tiny(Class::S, 16, 2, 3, real)).unwrap();
    let tally = harness::assert_order_does_not_matter(|| Box::new(make(true)), u64::MAX);
    assert_eq!(
        harness::run(&mut make(false), CallOrder::Random(1), u64::MAX),
        tally
    );
}
