//! What goes with the model: symbols for CasADi, an example, a Makefile.

use crate::model::Model;

pub(super) const MAKEFILE: &str = "# make          the example
# make casadi   a library for casadi.external
CC ?= cc
CFLAGS ?= -O3
WARNINGS = -std=c99 -Wall -Wextra -Wpedantic

example: main.c @NAME@.c @NAME@.h
\t$(CC) $(CFLAGS) $(WARNINGS) -o $@ main.c @NAME@.c -lm

casadi: @NAME@_casadi.so

@NAME@_casadi.so: @NAME@_casadi.c @NAME@.c @NAME@.h
\t$(CC) $(CFLAGS) $(WARNINGS) -fPIC -shared -o $@ @NAME@_casadi.c @NAME@.c -lm

clean:
\trm -f example @NAME@_casadi.so

.PHONY: casadi clean
";

/// A program that filters and simulates a few rows.
pub(super) fn example(model: &Model) -> String {
    let (n_x, n_u, n_y) = model.sizes();
    let middle: Vec<String> =
        model.distilled.visited.iter().map(|(low, high)| format!("{:?}", 0.5 * (low + high))).collect();
    let list = |numbers: &[String]| if numbers.is_empty() { "0.0".into() } else { numbers.join(", ") };
    let simulate = if model.sensor.moments.is_some() {
        "
    /* A free run from here, the input held. */
    for (int t = 0; t < ROWS; t++) {
        flags |= @NAME@_simulate(x, u, 1U, y, x);
        printf(\"%d\", t);
        for (int k = 0; k < @UPPER@_NY; k++) {
            printf(\",@FORMAT@\", (double)y[k]);
        }
        printf(\"\\n\");
    }
"
    } else {
        ""
    };
    let init = if model.initial().is_some() {
        "    @NAME@_filter_init(&filter);\n".to_owned()
    } else {
        format!(
            "    const @NAME@_real factor[{}] = {{0}};\n    @NAME@_filter_init_at(&filter, x, factor);\n",
            n_x * n_x
        )
    };
    format!(
        "/* Mean and variance of f, one step of the filter, and a free run. */
#include \"@NAME@.h\"

#include <math.h>
#include <stdio.h>

enum {{ ROWS = 10 }};

int main(void)
{{
    /* The middle of the training data. */
    @NAME@_real x[{n_x}] = {{{}}};
    const @NAME@_real u[{}] = {{{}}};
    @NAME@_real mean[{n_x}];
    @NAME@_real variance[{n_x}];
    @NAME@_real y[{n_y}];
    @NAME@_real log_likelihood = 0;
    static @NAME@_filter filter;
    unsigned flags = @NAME@_check(@UPPER@_NX, @UPPER@_NU, @UPPER@_NY);

    flags |= @NAME@_f(x, u, mean, variance);
    for (int d = 0; d < @UPPER@_NX; d++) {{
        printf(\"f[%d]: mean @FORMAT@, sd @FORMAT@\\n\", d, (double)mean[d], sqrt((double)variance[d]));
    }}

    /* A row whose outputs are missing. */
    for (int k = 0; k < @UPPER@_NY; k++) {{
        y[k] = NAN;
    }}
{init}    flags |= @NAME@_filter_step(&filter, y, u, &log_likelihood);
    @NAME@_filter_estimate(&filter, mean, NULL);
    for (int d = 0; d < @UPPER@_NX; d++) {{
        printf(\"x[%d]: @FORMAT@\\n\", d, (double)mean[d]);
    }}
{simulate}    return (flags == @UPPER@_OK) ? 0 : (int)flags;
}}
",
        list(&middle[..n_x]),
        n_u.max(1),
        list(&middle[n_x..])
    )
}

/// One function for CasADi: its name, inputs and outputs with their numbers of rows, and the call.
struct External {
    name: &'static str,
    outputs: Vec<(&'static str, usize)>,
    value: &'static str,
    slopes: &'static str,
}

/// The functions `f` and `h` with their Jacobians, as `casadi.external` looks for them.
pub(super) fn casadi(model: &Model) -> String {
    let (n_x, n_u, n_y) = model.sizes();
    let mut externals = vec![External {
        name: "f",
        outputs: vec![("mean", n_x), ("variance", n_x)],
        value: "flags = @NAME@_f(x, u, out0, out1);",
        slopes: "flags = @NAME@_f_jacobian(x, u, out0, out1, s00, s01, s10, s11);",
    }];
    if model.sensor.moments.is_some() {
        externals.push(External {
            name: "h",
            outputs: vec![("mean", n_y)],
            value: "flags = @NAME@_output(x, u, out0, NULL);",
            slopes: "flags = @NAME@_output_jacobian(x, u, out0, s00, s01);",
        });
    }
    let mut out = String::from(
        "/* f(x, u) -> (mean, variance) and h(x, u) -> mean with their Jacobians, for casadi.external(\"f\", \"./@NAME@_casadi.so\").
   Arguments outside of the training data are evaluated all the same: the flags of @NAME@.h are not passed on, but results
   that are no numbers are. */
#include \"@NAME@.h\"

typedef double casadi_real;
typedef long long int casadi_int;

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

/* A missing argument is zero. */
static void take(const casadi_real *from, int n, @NAME@_real to[])
{
    for (int i = 0; i < n; i++) {
        to[i] = (from != NULL) ? (@NAME@_real)from[i] : (@NAME@_real)0;
    }
}

/* Row-major to column-major; nothing where it is not asked for. */
static void give(const @NAME@_real from[], int rows, int columns, casadi_real *to)
{
    for (int i = 0; (i < rows) && (to != NULL); i++) {
        for (int j = 0; j < columns; j++) {
            to[j * rows + i] = (casadi_real)from[i * columns + j];
        }
    }
}
",
    );
    for external in externals {
        out.push_str(&external.text(n_x, n_u));
    }
    out
}

impl External {
    fn text(&self, n_x: usize, n_u: usize) -> String {
        let name = self.name;
        let inputs = [("x", n_x), ("u", n_u)];
        let dense = |rows: usize, columns: usize| format!("{{{rows}, {columns}, 1}}");
        let n_out = self.outputs.len();
        let mut jac_in: Vec<(String, usize)> =
            inputs.iter().map(|(n, rows)| ((*n).to_owned(), *rows)).collect();
        jac_in.extend(self.outputs.iter().map(|(n, rows)| (format!("out_{n}"), *rows)));
        let mut jac_out = Vec::new();
        for (output, rows) in &self.outputs {
            for (input, columns) in inputs {
                jac_out.push((format!("jac_{output}_{input}"), *rows, columns));
            }
        }
        let in_names: Vec<(String, usize, usize)> =
            inputs.iter().map(|(n, rows)| ((*n).to_owned(), *rows, 1)).collect();
        let out_names: Vec<(String, usize, usize)> =
            self.outputs.iter().map(|(n, rows)| ((*n).to_owned(), *rows, 1)).collect();
        let jac_in: Vec<(String, usize, usize)> = jac_in.into_iter().map(|(n, rows)| (n, rows, 1)).collect();
        let mut code = String::new();
        let frame =
            |name: &str, ins: &[(String, usize, usize)], outs: &[(String, usize, usize)], body: &str| {
                let list = |names: &[(String, usize, usize)]| {
                    names.iter().map(|(n, ..)| format!("\"{n}\"")).collect::<Vec<_>>().join(", ")
                };
                let patterns = |names: &[(String, usize, usize)]| {
                    names.iter().map(|(_, r, c)| dense(*r, *c)).collect::<Vec<_>>().join(", ")
                };
                format!(
                    "
/* ---- {name} ---- */

EXPORT casadi_int {name}_n_in(void);
EXPORT casadi_int {name}_n_out(void);
EXPORT const char *{name}_name_in(casadi_int i);
EXPORT const char *{name}_name_out(casadi_int i);
EXPORT const casadi_int *{name}_sparsity_in(casadi_int i);
EXPORT const casadi_int *{name}_sparsity_out(casadi_int i);
EXPORT int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w);
EXPORT int {name}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem);

casadi_int {name}_n_in(void)
{{
    return {n_in};
}}

casadi_int {name}_n_out(void)
{{
    return {n_out};
}}

const char *{name}_name_in(casadi_int i)
{{
    static const char *const names[] = {{{in_list}}};
    return ((i >= 0) && (i < {n_in})) ? names[i] : NULL;
}}

const char *{name}_name_out(casadi_int i)
{{
    static const char *const names[] = {{{out_list}}};
    return ((i >= 0) && (i < {n_out})) ? names[i] : NULL;
}}

/* Rows, columns, and that all entries are there. */
const casadi_int *{name}_sparsity_in(casadi_int i)
{{
    static const casadi_int patterns[][3] = {{{in_patterns}}};
    return ((i >= 0) && (i < {n_in})) ? patterns[i] : NULL;
}}

const casadi_int *{name}_sparsity_out(casadi_int i)
{{
    static const casadi_int patterns[][3] = {{{out_patterns}}};
    return ((i >= 0) && (i < {n_out})) ? patterns[i] : NULL;
}}

int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w)
{{
    if (sz_arg != NULL) {{
        *sz_arg = {n_in};
    }}
    if (sz_res != NULL) {{
        *sz_res = {n_out};
    }}
    if (sz_iw != NULL) {{
        *sz_iw = 0;
    }}
    if (sz_w != NULL) {{
        *sz_w = 0;
    }}
    return 0;
}}

int {name}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem)
{{
{body}}}
",
                    n_in = ins.len(),
                    n_out = outs.len(),
                    in_list = list(ins),
                    out_list = list(outs),
                    in_patterns = patterns(ins),
                    out_patterns = patterns(outs),
                )
            };
        let mut start = format!(
            "    @NAME@_real x[{n_x}] = {{0}};\n    @NAME@_real u[{}] = {{0}};\n    unsigned flags;\n",
            n_u.max(1)
        );
        for (i, (_, rows)) in self.outputs.iter().enumerate() {
            start += &format!("    @NAME@_real out{i}[{rows}];\n");
        }
        let arguments = format!(
            "    (void)iw;\n    (void)w;\n    (void)mem;\n    take(arg[0], {n_x}, x);\n    take(arg[1], {n_u}, u);\n"
        );
        let mut body = format!("{start}{arguments}    {}\n", self.value);
        for (i, (_, rows)) in self.outputs.iter().enumerate() {
            body += &format!("    give(out{i}, {rows}, 1, res[{i}]);\n");
        }
        let end = "    return ((flags & @UPPER@_BAD_ARGUMENT) != 0U) ? 1 : 0;\n";
        body += end;
        code += &frame(name, &in_names, &out_names, &body);
        let mut body = start;
        for (i, (_, rows)) in self.outputs.iter().enumerate() {
            for (j, (_, columns)) in inputs.iter().enumerate() {
                body += &format!("    @NAME@_real s{i}{j}[{}];\n", (rows * columns).max(1));
            }
        }
        body += &arguments;
        body += &format!("    {}\n", self.slopes);
        for i in 0..n_out {
            for (j, (_, columns)) in inputs.iter().enumerate() {
                body +=
                    &format!("    give(s{i}{j}, {}, {columns}, res[{}]);\n", self.outputs[i].1, 2 * i + j);
            }
        }
        body += end;
        code += &frame(&format!("jac_{name}"), &jac_in, &jac_out, &body);
        code
    }
}
