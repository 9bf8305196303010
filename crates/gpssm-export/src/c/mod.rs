//! C99: one header, one source, an example and a Makefile. No allocation, no recursion, no dependencies beyond `math.h`;
//! tables are constants. A second source has the symbols that `casadi.external` expects.
//!
//! - `source`: the parts of the source in order; `templates` holds what is the same for every model
//! - `tables`: numbers; `code`: expressions as statements
//! - `header`: the interface with names, ranges, losses and costs (`cost`)
//! - `companions`: CasADi, example, Makefile

mod code;
mod companions;
mod cost;
mod header;
mod source;
mod tables;

use crate::File;
use crate::error::ExportError;
use crate::model::{Model, Precision};

/// All files of a model as C.
pub fn export(model: &Model) -> Result<Vec<File>, ExportError> {
    let name = &model.options.name;
    Ok(vec![
        File::text(format!("{name}.h"), finish(model, &header::header(model))),
        File::text(format!("{name}.c"), finish(model, &source::source(model)?)),
        File::text(format!("{name}_casadi.c"), finish(model, &companions::casadi(model))),
        File::text("main.c", finish(model, &companions::example(model))),
        File::text("Makefile", finish(model, companions::MAKEFILE)),
    ])
}

/// Puts the name of the model and its numbers' type in their places.
fn finish(model: &Model, text: &str) -> String {
    let name = &model.options.name;
    let is_float = model.options.precision == Precision::Float;
    text.replace("@NAME@", name)
        .replace("@UPPER@", &name.to_uppercase())
        .replace("@REAL@", if is_float { "float" } else { "double" })
        .replace("@FORMAT@", if is_float { "%.9g" } else { "%.17g" })
}

/// Text that can stand in a comment.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *").replace(['\n', '\r'], " ").replace("??", "? ?")
}
