//! The source in order.

use std::fmt::Write as _;

use super::code::{HELPERS, MATH, Writer, number};
use super::comment;
use super::tables::{array, tables};
use crate::error::ExportError;
use crate::kernel::KernelExpression;
use crate::model::{Filter, Model, Precision, State};

const ALGEBRA: &str = include_str!("templates/algebra.c");
const EVALUATE: &str = include_str!("templates/evaluate.c");
const OUTPUT: &str = include_str!("templates/output.c");
const ROW: &str = include_str!("templates/row.c");
const INPUT: &str = include_str!("templates/input.c");
const EXTENDED: &str = include_str!("templates/extended.c");
const SCENARIOS: &str = include_str!("templates/scenarios.c");
const SCENARIO_FILTER: &str = include_str!("templates/scenario_filter.c");
const PARTICLES: &str = include_str!("templates/particles.c");

const SCENARIO_SIMULATION: &str = "
unsigned @NAME@_scenario_simulate(size_t k, const real x0[], const real u[], size_t n_rows, real y[], real x_last[])
{
    if (k >= @UPPER@_SCENARIOS) {
        return @UPPER@_BAD_ARGUMENT;
    }
    return simulate(k + 1U, x0, u, n_rows, y, x_last);
}
";
const STEP_SCENARIOS: &str = "    flags |= step_scenarios(filter, own_y, own_u);
";
const INIT_SCENARIOS: &str = "    for (size_t k = 0U; k < @UPPER@_SCENARIOS; k++) {
        filter->log_weight[k] = R(0.0);
        for (size_t d = 0U; d < NX; d++) {
            filter->scenario_mean[k * NX + d] = filter->mean[d];
        }
        for (size_t i = 0U; i < NX * NX; i++) {
            filter->scenario_factor[k * NX * NX + i] = filter->factor[i];
        }
    }
";

pub(super) fn source(model: &Model) -> Result<String, ExportError> {
    let body = body(model);
    let mut out = format!("/* {} */\n\n", comment(&super::header::title(model)));
    out.push_str(
        "#include \"@NAME@.h\"\n\n#include <math.h>\n#include <stddef.h>\n\ntypedef @NAME@_real real;\n\n",
    );
    out.push_str("#define R(number) ((real)(number))\n");
    let suffix = if model.options.precision == Precision::Float { "f" } else { "" };
    for function in MATH {
        let name = function.to_uppercase();
        if calls(&body, &name)
            || HELPERS.iter().any(|(helper, text)| calls(&body, helper) && calls(text, &name))
        {
            let _ = writeln!(out, "#define {name} {function}{suffix}");
        }
    }
    out.push('\n');
    for (name, text) in HELPERS {
        if calls(&body, name) {
            out.push_str(text);
            out.push('\n');
        }
    }
    out.push_str(&body);
    Ok(out)
}

/// Whether a function of this name is called.
fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(i, _)| {
        let before = text[..i].chars().next_back();
        let after = text[i + name.len()..].chars().next();
        after == Some('(') && !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

fn body(model: &Model) -> String {
    let (n_x, n_u, n_y) = model.sizes();
    let sparse = || {
        model.states.iter().filter_map(|state| match state {
            State::Sparse(function, kernel) => Some((function, kernel)),
            State::Lag(_) => None,
        })
    };
    let most = sparse().map(|(f, _)| f.n_inducing).max().unwrap_or(1).max(1);
    let slopes = sparse().map(|(f, k)| f.n_inducing * k.gradient.len()).max().unwrap_or(1).max(1);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "enum {{ NX = {n_x}, NU = {n_u}, NZ = {}, NY = {n_y}, MOST_INDUCING = {most}, MOST_SLOPES = {slopes} }};\n",
        n_x + n_u
    );
    out.push_str(
        "/* f(z) = offset + slopes . z + k(z, U) . coefficients; variance k(z, z) - |phi|^2 + |S' phi|^2, phi = L^-1 k(U, z). */\n\
         typedef struct {\n    size_t n;\n    size_t n_active;\n    const size_t *active;\n    real offset;\n    const real *slopes;\n    \
         const real *chol;\n    const real *factor;\n} sparse_function;\n\n",
    );
    out.push_str(&tables(model));
    out.push('\n');
    out.push_str(ALGEBRA);
    out.push_str("\n/* ---- kernels ---- */\n\n");
    for (i, state) in model.states.iter().enumerate() {
        if let State::Sparse(function, kernel) = state {
            kernels(i + 1, function.n_inducing, kernel, n_x + n_u, &mut out);
        }
    }
    let several = !model.distilled.scenarios.is_empty();
    let states = model.states.iter().enumerate().map(|(i, state)| state_code(i, state, several));
    let states = states.collect::<String>();
    out.push_str(&EVALUATE.replace("@states@\n", &states));
    if model.sensor.moments.is_some() {
        out.push('\n');
        output(model, &mut out);
        out.push_str(OUTPUT);
    }
    if several {
        out.push('\n');
        out.push_str(SCENARIOS);
        if model.sensor.moments.is_some() {
            out.push_str(SCENARIO_SIMULATION);
        }
    }
    out.push('\n');
    noise(model, &mut out);
    filter(model, &mut out);
    out
}

/// k(z, U), its slopes, k(z, z) and its slopes for one state.
fn kernels(i: usize, n: usize, kernel: &KernelExpression, n_z: usize, out: &mut String) {
    let graph = &kernel.graph;
    let variable = |c: usize| if c < n_z { format!("z[{c}]") } else { format!("u[{}]", c - n_z) };
    let per_input = graph.depends(|c| c >= n_z);
    let roots: Vec<usize> = kernel.gradient.iter().map(|(_, id)| *id).collect();
    for with_slopes in [false, true] {
        let mut wanted = graph.needed(&[kernel.value]);
        if with_slopes {
            graph.needed(&roots).into_iter().zip(&mut wanted).for_each(|(needed, wanted)| *wanted |= needed);
        }
        let part = |inner: bool| -> Vec<bool> {
            wanted.iter().zip(&per_input).map(|(wanted, own)| *wanted && *own == inner).collect()
        };
        let outer = Writer { graph, variable: &variable, indent: 4 };
        let inner = Writer { indent: 8, ..outer };
        let (name, more) = if with_slopes { ("kernel_slopes", ", real dk[]") } else { ("kernel", "") };
        let mut code = String::new();
        outer.statements(&part(false), &mut code);
        let mut looped = String::new();
        inner.statements(&part(true), &mut looped);
        let _ = writeln!(looped, "        k[i] = {};", inner.term(kernel.value));
        if with_slopes {
            for (a, root) in roots.iter().enumerate() {
                let _ = writeln!(looped, "        dk[{}U + i] = {};", a * n, inner.term(*root));
            }
        }
        let _ = writeln!(out, "static void {name}_{i}(const real z[], real k[]{more})\n{{");
        out.push_str(&code);
        let _ = writeln!(out, "    for (size_t i = 0U; i < {n}U; i++) {{");
        if looped.contains("u[") {
            let _ = writeln!(out, "        const real *const u = &inducing_{i}[i * NZ];");
        }
        out.push_str(&looped);
        out.push_str("    }\n");
        if !code.contains("z[") && !looped.contains("z[") {
            out.push_str("    (void)z;\n");
        }
        if with_slopes && roots.is_empty() {
            out.push_str("    (void)dk;\n");
        }
        out.push_str("}\n\n");
    }
    let mut roots = vec![kernel.diagonal];
    roots.extend(&kernel.diagonal_gradient);
    let writer = Writer { graph, variable: &variable, indent: 4 };
    let mut code = String::new();
    writer.statements(&graph.needed(&roots), &mut code);
    let _ = writeln!(out, "static real prior_{i}(const real z[], real slope[])\n{{");
    for (a, root) in kernel.diagonal_gradient.iter().enumerate() {
        let _ = writeln!(code, "    slope[{a}] = {};", writer.term(*root));
    }
    out.push_str(&code);
    if !code.contains("z[") && !writer.term(kernel.diagonal).contains("z[") {
        out.push_str("    (void)z;\n");
    }
    if kernel.diagonal_gradient.is_empty() {
        out.push_str("    (void)slope;\n");
    }
    let _ = writeln!(out, "    return {};\n}}\n", writer.term(kernel.diagonal));
}

fn state_code(d: usize, state: &State, several: bool) -> String {
    let slope = |name: &str| format!("({name} != NULL) ? &{name}[{d} * NZ] : NULL");
    match state {
        State::Lag(of) => format!(
            "    mean[{d}] = z[{of}];
    if (variance != NULL) {{
        variance[{d}] = R(0.0);
    }}
    for (size_t c = 0U; c < NZ; c++) {{
        if (mean_slope != NULL) {{
            mean_slope[{d} * NZ + c] = (c == {of}U) ? R(1.0) : R(0.0);
        }}
        if (variance_slope != NULL) {{
            variance_slope[{d} * NZ + c] = R(0.0);
        }}
    }}
"
        ),
        State::Sparse(function, _) => {
            let i = d + 1;
            let coefficients = match several {
                true => format!(
                    "(scenario == 0U) ? coefficients_{i} : &scenarios_{i}[(scenario - 1U) * {}U]",
                    function.n_inducing
                ),
                false => format!("coefficients_{i}"),
            };
            format!(
                "    if (mean_slope != NULL) {{
        kernel_slopes_{i}(z, k, dk);
        slopes = dk;
    }} else {{
        kernel_{i}(z, k);
    }}
    if (variance != NULL) {{
        prior = prior_{i}(z, prior_slope);
        prior_slopes = prior_slope;
    }}
    combine(&state_{i}, {coefficients}, z, k, slopes, prior, prior_slopes, &mean[{d}],
            (variance != NULL) ? &variance[{d}] : NULL, {},
            {});
",
                slope("mean_slope"),
                slope("variance_slope")
            )
        }
    }
}

/// The sensor's mean, variance and slopes.
fn output(model: &Model, out: &mut String) {
    let Some(moments) = &model.sensor.moments else { return };
    let (n_x, n_u, _) = model.sizes();
    let n_z = n_x + n_u;
    let graph = &model.sensor.graph;
    let variable = |c: usize| if c < n_x { format!("x[{c}]") } else { format!("u[{}]", c - n_x) };
    let mut code = String::new();
    let plain = Writer { graph, variable: &variable, indent: 4 };
    let block = |roots: &[usize], target: &str, done: &[bool], code: &mut String| -> Vec<bool> {
        let needed = graph.needed(roots);
        let wanted: Vec<bool> = needed.iter().zip(done).map(|(needed, done)| *needed && !*done).collect();
        let writer = Writer { indent: if target == "mean" { 4 } else { 8 }, ..plain };
        writer.statements(&wanted, code);
        for (i, root) in roots.iter().enumerate() {
            let _ = writeln!(code, "{}{target}[{i}] = {};", " ".repeat(writer.indent), writer.term(*root));
        }
        wanted.iter().zip(done).map(|(wanted, done)| *wanted || *done).collect()
    };
    let done = block(&moments.mean, "mean", &vec![false; graph.operations().len()], &mut code);
    code.push_str("    if (variance != NULL) {\n");
    block(&moments.variance, "variance", &done, &mut code);
    code.push_str("    }\n    if (slope != NULL) {\n");
    let slopes: Vec<usize> = moments.jacobian.iter().flat_map(|row| row[..n_z].iter().copied()).collect();
    block(&slopes, "slope", &done, &mut code);
    code.push_str("    }\n");
    out.push_str(
        "/* ---- outputs ---- */\n\n/* Mean and variance of the outputs, and slopes (output, component of (x, u)) unless NULL. */\n\
         static void output(const real x[], const real u[], real mean[], real variance[], real slope[])\n{\n",
    );
    for name in ["x", "u"] {
        if !code.contains(&format!("{name}[")) {
            let _ = writeln!(out, "    (void){name};");
        }
    }
    out.push_str(&code);
    out.push_str("}\n\n");
}

/// Noise of the process, and what a filter needs of the sensor.
fn noise(model: &Model, out: &mut String) {
    let n_x = model.distilled.n_x;
    let scenarios = &model.distilled.scenarios;
    let all = [&model.distilled.process_noise].into_iter().chain(scenarios.iter().map(|s| &s.process_noise));
    array("process_covariance", &all.flatten().copied().collect::<Vec<_>>(), out);
    let moving: Vec<&str> =
        model.states.iter().map(|s| if matches!(s, State::Lag(_)) { "0" } else { "1" }).collect();
    let _ = writeln!(out, "static const int is_moving[{n_x}] = {{{}}};\n", moving.join(", "));
    out.push_str(
        "/* Lower factor of Q, with the variance of f where it is given. */
static void process_noise(size_t scenario, const real variance[], real l[])
{
    const real *const q = &process_covariance[scenario * NX * NX];
    for (size_t i = 0U; i < NX * NX; i++) {
        l[i] = R(0.0);
    }
    for (size_t i = 0U; i < NX; i++) {
        for (size_t j = 0U; j <= i; j++) {
            real sum = R(0.0);
            if ((is_moving[i] != 0) && (is_moving[j] != 0)) {
                sum = q[i * NX + j] - dot(j, &l[i * NX], &l[j * NX]);
                if (i == j) {
                    sum += (variance != NULL) ? variance[i] : R(0.0);
                    sum = (sum > R(0.0)) ? SQRT(sum) : R(0.0);
                } else {
                    sum = (l[j * NX + j] > R(0.0)) ? (sum / l[j * NX + j]) : R(0.0);
                }
            }
            l[i * NX + j] = sum;
        }
    }
}

",
    );
    if let Some(covariance) = &model.sensor.noise {
        array("sensor_covariance", covariance, out);
        out.push_str(
            "
/* Lower factor of R over the outputs that were seen, into the first rows of `l`. */
static void sensor_factor(size_t n, const size_t seen[], real l[], size_t stride)
{
    for (size_t i = 0U; i < n; i++) {
        for (size_t j = 0U; j <= i; j++) {
            const real sum =
                sensor_covariance[seen[i] * NY + seen[j]] - dot(j, &l[i * stride], &l[j * stride]);
            l[i * stride + j] = (i == j) ? SQRT(sum) : (sum / l[j * stride + j]);
        }
    }
}

",
        );
        let _ = writeln!(out, "#define HALF_LOG_2_PI {}\n", number(0.918_938_533_204_672_7));
    }
}

fn filter(model: &Model, out: &mut String) {
    out.push_str(ROW);
    match model.options.filter {
        Filter::Extended | Filter::Auto => {
            let several = !model.distilled.scenarios.is_empty();
            let (init, step) = if several { (INIT_SCENARIOS, STEP_SCENARIOS) } else { ("", "") };
            out.push_str(
                &EXTENDED
                    .replace("@init_scenarios@", init)
                    .replace("@step_scenarios@", step)
                    .replace("@scenario_steps@", if several { SCENARIO_FILTER } else { "" }),
            );
        }
        Filter::Particles => {
            let _ = writeln!(out, "enum {{ PARTICLES = {} }};\n", model.options.particles);
            log_density(model, out);
            let is_float = model.options.precision == Precision::Float;
            let (shift, step) =
                if is_float { ("40", "5.9604644775390625e-8") } else { ("11", "1.1102230246251565e-16") };
            out.push_str(&PARTICLES.replace("@SHIFT@", shift).replace("@STEP@", step));
        }
    }
    if model.distilled.n_u > 0 {
        out.push_str(INPUT);
    }
    if let Some((mean, chol)) = model.initial() {
        out.push('\n');
        array("first_mean", &mean, out);
        array("first_factor", &chol, out);
        let seed = if model.options.filter == Filter::Particles {
            "    @NAME@_filter_seed(filter, UINT64_C(1));\n"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "\nvoid @NAME@_filter_init(@NAME@_filter *filter)\n{{\n    @NAME@_filter_init_at(filter, first_mean, first_factor);\n{seed}}}"
        );
    }
}

/// log p(y | x, u) over the outputs that were seen.
fn log_density(model: &Model, out: &mut String) {
    out.push_str("/* Log density of the outputs; those that are NaN are missing. */\nstatic real log_density(const real x[], const real u[], const real y[])\n{\n");
    if model.sensor.noise.is_some() {
        out.push_str(
            "    real expected[NY];
    real l[NY * NY] = {R(0.0)};
    real residual[NY] = {R(0.0)};
    size_t seen[NY];
    size_t n = 0U;
    real sum = R(0.0);
    output(x, u, expected, NULL, NULL);
    for (size_t k = 0U; k < NY; k++) {
        if (!isnan(y[k])) {
            seen[n] = k;
            residual[n] = y[k] - expected[k];
            n++;
        }
    }
    sensor_factor(n, seen, l, n);
    for (size_t i = 0U; i < n; i++) {
        residual[i] = (residual[i] - dot(i, &l[i * n], residual)) / l[i * n + i];
        sum -= R(0.5) * residual[i] * residual[i] + LOG(l[i * n + i]) + HALF_LOG_2_PI;
    }
    return sum;
}

",
        );
        return;
    }
    let (n_x, n_u, _) = model.sizes();
    let graph = &model.sensor.graph;
    let variable = |c: usize| match c {
        c if c < n_x => format!("x[{c}]"),
        c if c < n_x + n_u => format!("u[{}]", c - n_x),
        c => format!("y[{}]", c - n_x - n_u),
    };
    let mut code = String::new();
    code.push_str("    real sum = R(0.0);\n");
    for (k, &root) in model.sensor.log_density.iter().enumerate() {
        let condition =
            if model.sensor.is_independent { format!("if (!isnan(y[{k}])) ") } else { String::new() };
        let _ = writeln!(code, "    {condition}{{");
        let writer = Writer { graph, variable: &variable, indent: 8 };
        writer.statements(&graph.needed(&[root]), &mut code);
        let _ = writeln!(code, "        sum += {};\n    }}", writer.term(root));
    }
    code.push_str("    return sum;\n}\n\n");
    for name in ["x", "u", "y"] {
        if !code.contains(&format!("{name}[")) {
            let _ = writeln!(out, "    (void){name};");
        }
    }
    out.push_str(&code);
}
