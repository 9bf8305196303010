//! Run-time choice of the instruction set for our own loops.

use pulp::{Arch, Simd, WithSimd};

/// A loop nest that is compiled once per instruction set.
///
/// `FMA` is true where the processor fuses `a * b + c` in hardware; without it `f64::mul_add` would be
/// a slow library call.
pub(crate) trait Vectorised {
    type Output;
    fn run<const FMA: bool>(self) -> Self::Output;
}

struct Dispatched<V>(V);

impl<V: Vectorised> WithSimd for Dispatched<V> {
    type Output = V::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> V::Output {
        if S::IS_SCALAR { self.0.run::<false>() } else { self.0.run::<true>() }
    }
}

/// Runs the loop nest with the best instruction set of this machine.
#[inline]
pub(crate) fn dispatch<V: Vectorised>(v: V) -> V::Output {
    Arch::new().dispatch(Dispatched(v))
}

/// `a * b + c`, fused where that is an instruction.
#[inline(always)]
pub(crate) fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Dot product with a fixed order of summation (sixteen partial sums).
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    struct Dot<'a>(&'a [f64], &'a [f64]);
    impl Vectorised for Dot<'_> {
        type Output = f64;
        #[inline(always)]
        fn run<const FMA: bool>(self) -> f64 {
            dot_inline::<FMA>(self.0, self.1)
        }
    }
    dispatch(Dot(a, b))
}

/// [`dot`] for use inside a loop nest that is already dispatched.
#[inline(always)]
pub(crate) fn dot_inline<const FMA: bool>(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 16;
    let n = a.len().min(b.len());
    let (a_chunks, a_rest) = a[..n].as_chunks::<LANES>();
    let (b_chunks, b_rest) = b[..n].as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] = multiply_add::<FMA>(x[lane], y[lane], sums[lane]);
        }
    }
    let mut total = 0.0;
    for (x, y) in a_rest.iter().zip(b_rest) {
        total = multiply_add::<FMA>(*x, *y, total);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    total + sums[0]
}
