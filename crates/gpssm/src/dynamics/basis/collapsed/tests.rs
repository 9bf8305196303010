//! Sums that break down are formed anew.

use super::*;
use crate::dynamics::basis::features::BasisChoice;
use crate::dynamics::basis::hilbert::HilbertChoice;
use crate::kernel::Kernel;

/// The base with B after some steps, with its sums spoilt at one of them or not.
fn run(spoil: Option<usize>) -> (CollapsedBlock, Numerics) {
    let n = 30;
    let wave = |t: usize| (0.7 * t as f64).sin();
    let rows: Vec<[f64; 1]> = (0..n).map(|t| [wave(t)]).collect();
    let reference = Pairs {
        n_x: 1,
        points: Points::from_rows(1, rows.iter().map(|row| &row[..])),
        residuals: (0..n).map(|t| wave(t + 1) - wave(t)).collect(),
    };
    let context = Pairs { n_x: 1, points: Points::new(1), residuals: Vec::new() };
    let choice = BasisChoice::Hilbert(std::sync::Arc::new(HilbertChoice::new(vec![0.0], vec![2.0], 5)));
    let design = Design::new(&[Kernel::squared_exponential(1.0, &[0.8])], &choice, vec![0.1]).unwrap();
    let mut block = CollapsedBlock::new(&[0], design, 0, &context, &reference).unwrap();
    let mut genealogy = Genealogy::new(None);
    let mut births = Vec::new();
    let particles = Points::from_rows(1, [&[0.2][..], &[-0.4][..]]);
    genealogy.start(2, &mut births);
    block.edges(&births, &[0.2, -0.4], 1);
    block.rows(&genealogy, &births, &particles, &[0.0; 2], 1);
    for t in 1..20 {
        genealogy.branch(&[0, 1], &mut births);
        block.edges(&births, &[0.2, -0.4], 1);
        if spoil == Some(t) {
            (0..5).for_each(|j| *block.given_sums.gram.get_mut(j, j) -= 1e3);
        }
        block.forget(&genealogy);
        block.rows(&genealogy, &births, &particles, &[0.0; 2], 1);
    }
    let numerics = block.numerics();
    (block, numerics)
}

/// A sum that is no longer positive definite is replaced by a fresh one, counted, and nothing else changes.
#[test]
fn a_breakdown_is_repaired_and_counted() {
    let (sound, numerics) = run(None);
    assert_eq!(numerics, Numerics::default());
    for t in [1, 7, 19] {
        let (repaired, numerics) = run(Some(t));
        assert_eq!(numerics, Numerics { breakdowns: 1, ..Numerics::default() });
        for (a, b) in repaired.nodes.iter().zip(&sound.nodes) {
            for (a, b) in a.sides.iter().zip(&b.sides) {
                assert!((a.log_density - b.log_density).abs() < 1e-9);
                assert!(a.mean.iter().zip(&b.mean).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}
