//! The interface, with names, ranges, losses and costs in its comments.

use std::fmt::Write as _;

use gpssm::posterior::Distilled;

use super::comment;
use super::cost::costs;
use crate::expression::Cost;
use crate::model::{Filter, Model, Precision};

/// One line on what the file is.
pub(super) fn title(model: &Model) -> String {
    let (n_x, n_u, n_y) = model.sizes();
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    format!(
        "@NAME@: a state-space model learned by gpssm, {}, {}, {}",
        plural(n_x, "state"),
        plural(n_u, "input"),
        plural(n_y, "output")
    )
}

pub(super) fn header(model: &Model) -> String {
    let (n_x, n_u, n_y) = model.sizes();
    let d = &model.distilled;
    let mut out = format!("/* {}\n", comment(&title(model)));
    let mut line = |text: &str| {
        let _ = writeln!(out, "{}", format!(" * {}", comment(text)).trim_end());
    };
    line("");
    line("x' = f(x, u) + v,  v ~ N(0, Q),  y ~ p(y | x, u);  f is known with a mean and a variance.");
    line("");
    describe(d, &mut line);
    line("");
    losses(d, &mut line);
    line("");
    line(
        "Operations of one call at most (simple: additions, multiplications, comparisons; calls: exp, log, sin, ...):",
    );
    let costs = costs(model);
    let mut functions = vec![
        ("@NAME@_f", costs.f),
        ("@NAME@_f_jacobian", costs.f_jacobian),
        ("@NAME@_filter_step", costs.filter),
    ];
    if model.sensor.moments.is_some() {
        functions.insert(2, ("@NAME@_output", costs.output));
    }
    for (name, Cost { simple, divisions, calls }) in functions {
        line(&format!("  {name}: {simple} simple, {divisions} divisions and square roots, {calls} calls"));
    }
    line(
        "Nothing is allocated, nothing calls itself, and all tables are constants. Functions keep no state but that of a filter.",
    );
    out.push_str(" */\n");
    let _ = write!(
        out,
        "#ifndef @UPPER@_H\n#define @UPPER@_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         #define @UPPER@_NX {n_x}\n#define @UPPER@_NU {n_u}\n#define @UPPER@_NY {n_y}\n\ntypedef @REAL@ @NAME@_real;\n\n\
         /* Bits of what every function returns. */\n\
         #define @UPPER@_OK 0x0U\n\
         /* x or u lies outside of the range of the training data: f is a guess there. */\n\
         #define @UPPER@_EXTRAPOLATION 0x1U\n\
         /* An argument or a result is no finite number. */\n\
         #define @UPPER@_NOT_FINITE 0x2U\n\
         /* The caller was made for a model of other sizes. */\n\
         #define @UPPER@_BAD_SIZE 0x4U\n\
         /* A pointer is NULL where it must not be, or an index is too large. */\n\
         #define @UPPER@_BAD_ARGUMENT 0x8U\n\n"
    );
    out.push_str(INTERFACE);
    if model.sensor.moments.is_some() {
        out.push_str(OUTPUTS);
    }
    let k = d.scenarios.len();
    if k > 0 {
        let _ = write!(out, "\n#define @UPPER@_SCENARIOS {k}\n{SCENARIOS}");
        if model.sensor.moments.is_some() {
            out.push_str(SCENARIO_SIMULATION);
        }
    }
    filter(model, &mut out);
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

/// States, inputs and outputs with their names and ranges, and what rows are.
fn describe(d: &Distilled, line: &mut dyn FnMut(&str)) {
    let range = |c: usize| {
        d.visited
            .get(c)
            .map_or(String::new(), |(low, high)| format!(", training data from {low:.6} to {high:.6}"))
    };
    for (i, name) in d.state_names.iter().enumerate() {
        line(&format!("x[{i}]  {name}{}", range(i)));
    }
    for (i, name) in d.input_names.iter().enumerate() {
        line(&format!("u[{i}]  {name}{}", range(d.n_x + i)));
    }
    for (i, name) in d.output_names.iter().enumerate() {
        line(&format!("y[{i}]  {name}"));
    }
    let rows = &d.rows;
    if let Some(time) = rows.sampling_time {
        line(&format!(
            "A step is {time}{}.",
            rows.time_unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"))
        ));
    }
    if rows.every > 1 {
        line(&format!("A step is {} rows of the record.", rows.every));
    }
    if rows.delay != 1 || rows.input_lags > 0 {
        line(&format!(
            "For each measured input, u holds its values of {} to {} steps before the row of y.",
            rows.delay.saturating_sub(1),
            rows.delay.saturating_sub(1) + rows.input_lags
        ));
    }
}

/// What the model lost against the posterior.
fn losses(d: &Distilled, line: &mut dyn FnMut(&str)) {
    let loss = &d.loss;
    for (i, name) in d.state_names.iter().enumerate() {
        if let (Some(mean), Some(sd)) = (loss.mean_error.get(i), loss.sd_error.get(i)) {
            line(&format!(
                "Against the full posterior: mean of f for {name} off by {:.1} % of its sd over the data, sd off by {:.1} %.",
                100.0 * mean,
                100.0 * sd
            ));
        }
    }
    for (task, found) in [("Free run", &loss.free_run), ("One step ahead", &loss.one_step)] {
        let Some(found) = found else { continue };
        for (k, name) in d.output_names.iter().enumerate() {
            let fit = |fits: &[Option<f64>]| {
                fits.get(k).copied().flatten().map_or_else(|| "-".into(), |fit| format!("{fit:.1} %"))
            };
            line(&format!(
                "{task} of {name} over the training record: fit {}, full posterior {}.",
                fit(&found.distilled_fit),
                fit(&found.posterior_fit)
            ));
        }
    }
}

const INTERFACE: &str = "/* BAD_SIZE unless these are the numbers of states, inputs and outputs. */
unsigned @NAME@_check(size_t n_x, size_t n_u, size_t n_y);

/* Mean and variance (unless NULL) of f(x, u) by state. The next state has variance + Q. */
unsigned @NAME@_f(const @NAME@_real x[], const @NAME@_real u[], @NAME@_real mean[], @NAME@_real variance[]);

/* The same with derivatives, row-major (state, component), each unless NULL. */
unsigned @NAME@_f_jacobian(const @NAME@_real x[], const @NAME@_real u[], @NAME@_real mean[], @NAME@_real variance[],
                      @NAME@_real mean_x[], @NAME@_real mean_u[], @NAME@_real variance_x[], @NAME@_real variance_u[]);
";

const OUTPUTS: &str = "
/* Mean and variance (unless NULL) of the outputs given state and input. */
unsigned @NAME@_output(const @NAME@_real x[], const @NAME@_real u[], @NAME@_real mean[], @NAME@_real variance[]);

/* Mean of the outputs with its derivatives, row-major (output, component), each unless NULL. */
unsigned @NAME@_output_jacobian(const @NAME@_real x[], const @NAME@_real u[], @NAME@_real mean[], @NAME@_real mean_x[],
                           @NAME@_real mean_u[]);

/* Free run of the mean without noise: n_rows rows of u in, of y out; the state after them into x_last unless NULL. */
unsigned @NAME@_simulate(const @NAME@_real x0[], const @NAME@_real u[], size_t n_rows, @NAME@_real y[],
                    @NAME@_real x_last[]);
";

const SCENARIOS: &str = "
/* Next state by one posterior function, k from 0, without noise; derivatives row-major, each unless NULL. */
unsigned @NAME@_scenario(size_t k, const @NAME@_real x[], const @NAME@_real u[], @NAME@_real next[], @NAME@_real next_x[],
                    @NAME@_real next_u[]);
";

const SCENARIO_SIMULATION: &str = "
/* Free run of one posterior function without noise, as @NAME@_simulate. */
unsigned @NAME@_scenario_simulate(size_t k, const @NAME@_real x0[], const @NAME@_real u[], size_t n_rows, @NAME@_real y[],
                             @NAME@_real x_last[]);
";

fn filter(model: &Model, out: &mut String) {
    let k = model.distilled.scenarios.len();
    let (n_x, n_u, _) = model.sizes();
    let room = n_u.max(1);
    match model.options.filter {
        Filter::Extended | Filter::Auto => {
            let _ = write!(
                out,
                "\n/* Extended Kalman filter in square-root form: mean, and lower factor of the covariance, of the last row. */\n\
                 typedef struct {{\n    @NAME@_real mean[{n_x}];\n    @NAME@_real factor[{}];\n    @NAME@_real u[{room}];\n    int started;\n",
                n_x * n_x
            );
            if k > 0 {
                let _ = write!(
                    out,
                    "    @NAME@_real scenario_mean[{}];\n    @NAME@_real scenario_factor[{}];\n    @NAME@_real log_weight[{k}];\n",
                    k * n_x,
                    k * n_x * n_x
                );
            }
            out.push_str("} @NAME@_filter;\n");
            if k > 0 {
                out.push_str(
                    "\n/* The state by one posterior function: mean, lower factor of its covariance, and the probability of the function given\n   \
                     all rows so far, each unless NULL. */\n\
                     unsigned @NAME@_filter_scenario(const @NAME@_filter *filter, size_t k, @NAME@_real mean[], @NAME@_real factor[],\n                           \
                     @NAME@_real *weight);\n",
                );
            }
        }
        Filter::Particles => {
            let n = model.options.particles;
            let _ = write!(
                out,
                "\n#define @UPPER@_PARTICLES {n}\n\n/* Particle filter. */\n\
                 typedef struct {{\n    @NAME@_real x[{}];\n    @NAME@_real weight[{n}];\n    @NAME@_real room[{}];\n    \
                 @NAME@_real first_mean[{n_x}];\n    @NAME@_real first_factor[{}];\n    @NAME@_real u[{room}];\n    uint64_t state;\n    int started;\n}} @NAME@_filter;\n\n\
                 /* Random numbers from here on depend on the seed alone. */\n\
                 void @NAME@_filter_seed(@NAME@_filter *filter, uint64_t seed);\n",
                n * n_x,
                n * n_x,
                n_x * n_x
            );
        }
    }
    if model.initial().is_some() {
        out.push_str(
            "\n/* Starts at p(x_0) of the model. */\nvoid @NAME@_filter_init(@NAME@_filter *filter);\n",
        );
    }
    out.push_str(
        "
/* Starts at a Gaussian state, its covariance factor * factor' with a lower factor, row-major. A particle filter that starts
   here alone needs a seed as well. */
void @NAME@_filter_init_at(@NAME@_filter *filter, const @NAME@_real mean[], const @NAME@_real factor[]);

/* Takes the outputs y (NAN where missing) and the input u of the next row; log p(y | rows before) unless NULL. With NOT_FINITE, an
   input that is no finite number kept its last value, and an output that is infinite or too far away counted as missing. */
unsigned @NAME@_filter_step(@NAME@_filter *filter, const @NAME@_real y[], const @NAME@_real u[],
                       @NAME@_real *log_likelihood);

/* Mean and covariance (row-major) of the state given all rows so far, each unless NULL. */
void @NAME@_filter_estimate(const @NAME@_filter *filter, @NAME@_real mean[], @NAME@_real covariance[]);
",
    );
    if n_u > 0 {
        out.push_str(
            "
/* The input of the row that was taken last, for controllers that choose it once they know the state; @NAME@_filter_step was then
   given the input before. An input that is no finite number keeps its value. */
unsigned @NAME@_filter_input(@NAME@_filter *filter, const @NAME@_real u[]);
",
        );
    }
    if model.options.precision == Precision::Float {
        out.push_str("/* Numbers are 32-bit: variances of f keep few digits where inducing inputs lie close together. */\n");
    }
}
