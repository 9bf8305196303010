//! The private extension module `gpssm._core` beneath the Python package `gpssm`.
//!
//! Descriptions (models, settings, chain states) cross the border as JSON, numbers as NumPy arrays of float64.
//! The Python layer checks and converts what users write, so the functions here are terse.
//!
//! - `error`: errors of the library as Python exceptions
//! - `arrays`: arrays to rows and back
//! - `callback`: Python functions that the sampler calls; `attached`: what makes such calls cheap
//! - `kernels`: the table of kernels, and their values
//! - `blocks`: the building blocks for researchers
//! - `problem`: a model and a record; sampling
//! - `program`: the program `gpssm`
//! - `choose`: `states="auto"`
//! - `export`: models as sources and expressions
//! - `layout`: lagged inputs, delays and thinning
//! - `posterior`: what was learned, put to use
//! - `store`: runs on disk, and reports
//! - `testing`: what is known of sensors, and checks of users' own

mod arrays;
#[allow(unsafe_code)]
mod attached;
mod blocks;
mod callback;
mod choose;
mod error;
mod export;
mod future;
mod kernels;
mod layout;
#[allow(unsafe_code)]
mod native;
mod posterior;
mod problem;
mod program;
mod store;
mod testing;

/// The extension module.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::blocks::{Random, StateSpace, Transition, kernel_herding, slice_update};
    #[pymodule_export]
    use crate::choose::choose;
    #[pymodule_export]
    use crate::export::{export_c, export_expressions, export_fmu, export_onnx, fmu_sources};
    #[pymodule_export]
    use crate::future::{compare_futures, smooth_weights};
    #[pymodule_export]
    use crate::kernels::{kernel_matrix, kernels};
    #[pymodule_export]
    use crate::layout::laid_out;
    #[pymodule_export]
    use crate::posterior::{Posterior, evaluate_distilled};
    #[pymodule_export]
    use crate::problem::{Problem, assess, budget, next_look, summarise, toml_text};
    #[pymodule_export]
    use crate::program::run_program;
    #[pymodule_export]
    use crate::store::{open_run, report, save_run};
    #[pymodule_export]
    use crate::testing::{check_kernel, check_sensor, sensor_families};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
