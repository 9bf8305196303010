//! Numbers of a model as constant arrays.

use std::fmt::Write as _;

use gpssm::posterior::SparseFunction;

use super::code::number;
use crate::model::{Model, State};

/// `static const real name[] = {...};`
pub(super) fn array(name: &str, values: &[f64], out: &mut String) {
    let _ = writeln!(out, "static const real {name}[{}] = {{", values.len().max(1));
    let values = if values.is_empty() { &[0.0][..] } else { values };
    for row in values.chunks(6) {
        let row: Vec<String> = row.iter().map(|value| number(*value)).collect();
        let _ = writeln!(out, "    {},", row.join(", "));
    }
    out.push_str("};\n");
}

/// A lower triangle by rows as one by columns.
pub(super) fn by_columns(rows: &[f64], n: usize) -> Vec<f64> {
    (0..n).flat_map(|j| (j..n).map(move |i| rows[i * (i + 1) / 2 + j])).collect()
}

/// Units and ranges of z, and the numbers of all states.
pub(super) fn tables(model: &Model) -> String {
    let d = &model.distilled;
    let mut out = String::new();
    let z = |x: &[f64], u: &[f64]| [x, u].concat();
    array("z_shift", &z(&d.x_units.shift, &d.u_units.shift), &mut out);
    array("z_scale", &z(&d.x_units.scale, &d.u_units.scale), &mut out);
    array("z_low", &d.visited.iter().map(|range| range.0).collect::<Vec<_>>(), &mut out);
    array("z_high", &d.visited.iter().map(|range| range.1).collect::<Vec<_>>(), &mut out);
    for (i, state) in model.states.iter().enumerate() {
        if let State::Sparse(function, kernel) = state {
            let active: Vec<usize> = kernel.gradient.iter().map(|(c, _)| *c).collect();
            let depends = kernel.graph.depends(|c| c >= model.distilled.n_x + model.distilled.n_u);
            let is_used =
                kernel.gradient.iter().map(|(_, id)| id).chain([&kernel.value]).any(|id| depends[*id]);
            sparse(i + 1, function, &active, is_used, &mut out);
            if !d.scenarios.is_empty() {
                let all = d.scenarios.iter().flat_map(|scenario| scenario.coefficients[i].clone());
                array(&format!("scenarios_{}", i + 1), &all.collect::<Vec<_>>(), &mut out);
            }
        }
    }
    out
}

fn sparse(i: usize, f: &SparseFunction, active: &[usize], has_inputs: bool, out: &mut String) {
    let _ = writeln!(out, "\n/* State {i}. */");
    if has_inputs {
        array(&format!("inducing_{i}"), &f.inducing, out);
    }
    array(&format!("chol_{i}"), &by_columns(&f.chol, f.n_inducing), out);
    array(&format!("factor_{i}"), &f.variance_factor, out);
    array(&format!("coefficients_{i}"), &f.coefficients, out);
    array(&format!("slopes_{i}"), &f.slopes, out);
    let list: Vec<String> = active.iter().map(|c| format!("{c}U")).collect();
    let list = if list.is_empty() { "0U".into() } else { list.join(", ") };
    let _ = writeln!(out, "static const size_t active_{i}[{}] = {{{list}}};", active.len().max(1));
    let _ = writeln!(
        out,
        "static const sparse_function state_{i} = {{{}U, {}U, active_{i}, {}, slopes_{i}, chol_{i}, factor_{i}}};",
        f.n_inducing,
        active.len(),
        number(f.offset),
    );
}
