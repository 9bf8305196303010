//! Run-time choice of the instruction set for our own loops.

use pulp::{Arch, Simd, WithSimd};

/// A loop nest that is compiled once per instruction set.
pub(crate) trait Vectorised {
    type Output;
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

struct Dispatched<V>(V);

impl<V: Vectorised> WithSimd for Dispatched<V> {
    type Output = V::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> V::Output {
        self.0.run(simd)
    }
}

/// Runs the loop nest with the best instruction set of this machine.
#[inline]
pub(crate) fn dispatch<V: Vectorised>(v: V) -> V::Output {
    Arch::new().dispatch(Dispatched(v))
}

/// The instruction set of this machine that the loops run with: results are bit-equal for one binary on one of
/// them.
pub fn instruction_set() -> String {
    struct Lanes;
    impl Vectorised for Lanes {
        type Output = usize;
        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> usize {
            S::F64_LANES
        }
    }
    format!("{}, {} numbers at a time", std::env::consts::ARCH, dispatch(Lanes))
}

/// `a * b + c`, fused where that is an instruction; without one `f64::mul_add` is a slow library call.
#[inline(always)]
pub(crate) fn multiply_add<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::IS_SCALAR { a * b + c } else { a.mul_add(b, c) }
}

/// Dot product with a fixed order of summation on one instruction set.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    struct Dot<'a>(&'a [f64], &'a [f64]);
    impl Vectorised for Dot<'_> {
        type Output = f64;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> f64 {
            dot_inline(simd, self.0, self.1)
        }
    }
    dispatch(Dot(a, b))
}

/// [`dot`] for use inside a loop nest that is already dispatched.
#[inline(always)]
pub(crate) fn dot_inline<S: Simd>(simd: S, a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (a, a_rest) = S::as_simd_f64s(&a[..n]);
    let (b, b_rest) = S::as_simd_f64s(&b[..n]);
    let zero = simd.splat_f64s(0.0);
    let mut sums = [zero; 4];
    let (a_fours, a_vectors) = a.as_chunks::<4>();
    let (b_fours, b_vectors) = b.as_chunks::<4>();
    for (a, b) in a_fours.iter().zip(b_fours) {
        for lane in 0..4 {
            sums[lane] = simd.mul_add_e_f64s(a[lane], b[lane], sums[lane]);
        }
    }
    for (a, b) in a_vectors.iter().zip(b_vectors) {
        sums[0] = simd.mul_add_e_f64s(*a, *b, sums[0]);
    }
    let mut rest = 0.0;
    for (a, b) in a_rest.iter().zip(b_rest) {
        rest = multiply_add::<S>(*a, *b, rest);
    }
    let pairs = (simd.add_f64s(sums[0], sums[1]), simd.add_f64s(sums[2], sums[3]));
    rest + simd.reduce_sum_f64s(simd.add_f64s(pairs.0, pairs.1))
}
