//! Compiled functions, called by their address without the interpreter: numba's `@cfunc`, or any function of C.
//!
//! The address comes from Python and there is no way to check it, so calls are unsafe; they stand in this file alone. The Python side
//! checks the declared signature and keeps the function alive as long as the model lives.

use std::sync::Arc;

use gpssm::kernel::KernelFunction;
use gpssm::{Points, StateFunction};
use pyo3::prelude::*;

use crate::callback::{Asked, Failure};

/// `double f(const double *x, const double *u, const double *parameters)`, or of two points in place of x and u.
type OfState = unsafe extern "C" fn(*const f64, *const f64, *const f64) -> f64;
/// `double f(const double *y, const double *x, const double *u, const double *parameters)`
type OfOutputs = unsafe extern "C" fn(*const f64, *const f64, *const f64, *const f64) -> f64;

/// A compiled function of one point.
pub(crate) struct Native {
    name: String,
    address: usize,
    n_x: usize,
    failure: Arc<Failure>,
}

impl Native {
    /// The function, if it is a compiled one.
    pub(crate) fn new(
        name: &str,
        function: &Bound<'_, PyAny>,
        n_x: usize,
        failure: &Arc<Failure>,
    ) -> Option<Self> {
        let address = function.getattr("_gpssm_address").ok()?.extract().ok()?;
        Some(Self { name: name.to_owned(), address, n_x, failure: Arc::clone(failure) })
    }

    /// Values at all points, with the outputs `y` before them for a log density.
    pub(crate) fn evaluate(&self, y: Option<&[f64]>, z: &Points, parameters: &[f64], out: &mut [f64]) {
        if self.failure.is_raised() {
            out.fill(f64::NAN);
            return;
        }
        let mut point = vec![0.0; z.n_components()];
        for (i, out) in out.iter_mut().enumerate() {
            point.iter_mut().enumerate().for_each(|(c, value)| *value = z.column(c)[i]);
            let (x, u) = point.split_at(self.n_x);
            *out = self.call(y, x, u, parameters);
        }
        let asked = Asked { name: &self.name, n_x: self.n_x, is_density: y.is_some() };
        self.failure.look_at(&asked, z, parameters, out);
    }

    fn call(&self, y: Option<&[f64]>, x: &[f64], u: &[f64], parameters: &[f64]) -> f64 {
        let (x, u, parameters) = (x.as_ptr(), u.as_ptr(), parameters.as_ptr());
        // Safety: the address is that of a function of this signature, which the Python side has checked as far as it is
        // declared; the pointers are those of slices that outlive the call. Function pointers are as wide as usize.
        unsafe {
            match y {
                None => std::mem::transmute::<usize, OfState>(self.address)(x, u, parameters),
                Some(y) => {
                    std::mem::transmute::<usize, OfOutputs>(self.address)(y.as_ptr(), x, u, parameters)
                }
            }
        }
    }
}

impl KernelFunction for Native {
    fn row(&self, z: &Points, other: &[f64], parameters: &[f64], out: &mut [f64]) {
        if self.failure.is_raised() {
            out.fill(f64::NAN);
            return;
        }
        let mut point = vec![0.0; z.n_components()];
        for (i, out) in out.iter_mut().enumerate() {
            point.iter_mut().enumerate().for_each(|(c, value)| *value = z.column(c)[i]);
            *out = self.call(None, &point, other, parameters);
        }
        self.failure.look_at_kernel(&self.name, z, other, parameters, out);
    }
}

impl StateFunction for Native {
    fn evaluate(&self, z: &Points, parameters: &[f64], out: &mut [f64]) {
        self.evaluate(None, z, parameters, out);
    }
}
