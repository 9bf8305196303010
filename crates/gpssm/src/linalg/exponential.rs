//! A vectorised exponential for kernel values.

use pulp::Simd;

use super::simd::{Vectorised, dispatch, multiply_add};

/// Kernel values below this fraction of the signal variance are set to zero: subnormal numbers would
/// slow every factorisation down several times.
pub(crate) const NEGLIGIBLE: f64 = 1e-100;

/// `-ln(NEGLIGIBLE)`.
const LARGEST: f64 = 230.258_509_299_404_57;

/// Reciprocals of the factorials 0!..13!.
const TAYLOR: [f64; 14] = {
    let mut reciprocals = [1.0; 14];
    let mut factorial = 1.0;
    let mut n = 1;
    while n < 14 {
        factorial *= n as f64;
        reciprocals[n] = 1.0 / factorial;
        n += 1;
    }
    reciprocals
};

/// `exp(-a)` for `a >= 0`, zero beyond [`NEGLIGIBLE`]; relative error below 1e-15.
///
/// exp(-a) = 2^k exp(r) with |r| <= ln(2)/2, and a Taylor polynomial of degree 13 for exp(r). Free of
/// branches, so that loops over it vectorise.
#[inline(always)]
pub(crate) fn exp_negative<S: Simd>(a: f64) -> f64 {
    let (r, power) = reduced(a);
    chosen(a, polynomial::<S>(r) * power)
}

/// r and 2^k with exp(-a) = 2^k exp(r).
#[inline(always)]
fn reduced(a: f64) -> (f64, f64) {
    // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits of the sum.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if a < LARGEST { -a } else { -LARGEST };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    (r, f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52))
}

#[inline(always)]
fn polynomial<S: Simd>(r: f64) -> f64 {
    let mut polynomial = TAYLOR[13];
    for n in (0..13).rev() {
        polynomial = multiply_add::<S>(polynomial, r, TAYLOR[n]);
    }
    polynomial
}

/// The value, unless `a` is too large or NaN.
#[inline(always)]
fn chosen(a: f64, value: f64) -> f64 {
    // A comparison that NaN fails leads to NaN, never to a silent number.
    if a >= LARGEST {
        0.0
    } else if a.is_nan() {
        a
    } else {
        value
    }
}

/// Most numbers of a block of [`exp_negative_block`].
pub(crate) const BLOCK: usize = 64;

/// [`exp_negative`] of up to [`BLOCK`] numbers, to the last bit, in half the time: each loop has a short chain of
/// operations, so that the processor works on many numbers at once. The length is not a constant on purpose: of
/// a constant number of turns the compiler makes one long chain again.
#[inline(always)]
pub(crate) fn exp_negative_block<S: Simd>(a: &[f64], out: &mut [f64]) {
    let n = a.len();
    let (mut r, mut power) = ([0.0; BLOCK], [0.0; BLOCK]);
    let (r, power, out) = (&mut r[..n], &mut power[..n], &mut out[..n]);
    for i in 0..n {
        (r[i], power[i]) = reduced(a[i]);
    }
    for i in 0..n {
        out[i] = polynomial::<S>(r[i]);
    }
    for i in 0..n {
        out[i] = chosen(a[i], out[i] * power[i]);
    }
}

/// Replaces each `a >= 0` by `scale * exp(-a)`.
pub(crate) fn scaled_exp_negative(scale: f64, values: &mut [f64]) {
    struct Map<'a>(f64, &'a mut [f64]);
    impl Vectorised for Map<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, _: S) {
            for a in self.1.iter_mut() {
                *a = self.0 * exp_negative::<S>(*a);
            }
        }
    }
    dispatch(Map(scale, values));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_library() {
        let mut worst: f64 = 0.0;
        for i in 0..200_000 {
            let a = i as f64 * 1.15e-3;
            let mut value = [a];
            scaled_exp_negative(1.0, &mut value);
            worst = worst.max((value[0] / (-a).exp() - 1.0).abs());
        }
        assert!(worst < 1e-15, "{worst}");
    }

    #[test]
    fn blocks_are_equal_to_the_last_bit() {
        struct Both<'a>(&'a [f64; BLOCK]);
        impl Vectorised for Both<'_> {
            type Output = ([f64; BLOCK], [f64; BLOCK]);
            #[inline(always)]
            fn run<S: Simd>(self, _: S) -> Self::Output {
                let mut block = [0.0; BLOCK];
                exp_negative_block::<S>(self.0, &mut block);
                (block, self.0.map(exp_negative::<S>))
            }
        }
        for start in 0..400 {
            let mut a: [f64; BLOCK] =
                std::array::from_fn(|i| (f64::from(start) + 0.013 * i as f64).powi(2) / 600.0);
            a[start as usize % BLOCK] = [f64::NAN, f64::INFINITY, 0.0, 1e-300][start as usize % 4];
            let (block, single) = dispatch(Both(&a));
            assert_eq!(block.map(f64::to_bits), single.map(f64::to_bits));
        }
    }

    #[test]
    fn negligible_values_are_zero_and_nan_stays() {
        let mut values = [0.0, 231.0, 1e300, f64::INFINITY, f64::NAN];
        scaled_exp_negative(2.0, &mut values);
        assert_eq!(&values[..4], &[2.0, 0.0, 0.0, 0.0]);
        assert!(values[4].is_nan());
    }
}
