//! Bad inputs, each with what its one-line error must say. The program's tests run the same list.

/// One bad input.
pub struct Case {
    /// What it is about.
    pub name: &'static str,
    /// Files to write into an empty folder.
    pub files: &'static [(&'static str, &'static [u8])],
    /// Arguments of the program, run in that folder.
    pub args: &'static [&'static str],
    /// Parts that the error must have: file, line, column or key, and advice.
    pub expected: &'static [&'static str],
}

const GOOD: &[u8] = b"t,u,y\n0,1,0.1\n1,2,0.4\n2,1,0.3\n3,0,0.1\n4,1,0.2\n";
const FIT: &[&str] = &["fit", "data.csv", "--y", "y"];
const FIT_U: &[&str] = &["fit", "data.csv", "--y", "y", "--u", "u"];
const FIT_T: &[&str] = &["fit", "data.csv", "--y", "y", "--time", "t"];
const FIT_SEQ: &[&str] = &["fit", "data.csv", "--y", "y", "--sequence", "s"];
const MODEL: &[&str] = &["fit", "data.csv", "--model", "model.toml"];

const fn csv(
    name: &'static str,
    file: &'static [(&'static str, &'static [u8])],
    args: &'static [&'static str],
    expected: &'static [&'static str],
) -> Case {
    Case { name, files: file, args, expected }
}

macro_rules! data {
    ($name:expr, $bytes:expr, $args:expr, $($expected:expr),+) => {
        csv($name, &[("data.csv", $bytes)], $args, &["data.csv", $($expected),+])
    };
}

/// A run file beside good data; `[data]` is there already.
macro_rules! toml {
    ($name:expr, $text:expr, $($expected:expr),+) => {
        csv(
            $name,
            &[("data.csv", GOOD), ("model.toml", concat!("[data]\ny = 'y'\nu = 'u'\n", $text).as_bytes())],
            MODEL,
            &["model.toml", $($expected),+],
        )
    };
}

/// An option beside good data.
macro_rules! option {
    ($name:expr, $args:expr, $($expected:expr),+) => {
        csv($name, &[("data.csv", GOOD)], $args, &[$($expected),+])
    };
}

pub const CASES: &[Case] = &[
    // Files that are no tables.
    csv("file not found", &[], FIT, &["data.csv: there is no such file"]),
    csv("folder", &[("data.csv/x", b"")], FIT, &["data.csv: this is a folder"]),
    data!("empty file", b"", FIT, "the file is empty"),
    data!("blank lines only", b"\n\n\r\n", FIT, "the file is empty"),
    data!("byte order mark only", b"\xef\xbb\xbf", FIT, "the file is empty"),
    data!("binary", b"t,y\n0,1\n\x00\x01\x02", FIT, "this is a binary file, not a CSV file"),
    data!("spreadsheet", b"PK\x03\x04abc", FIT, "this is a spreadsheet or zip archive"),
    data!("compressed", b"\x1f\x8b\x08abc", FIT, "this is a compressed file"),
    data!("UTF-16", b"\xff\xfet\x00,\x00y\x00", FIT, "this is UTF-16 text", "UTF-8"),
    data!("Latin-1 field", b"t,y\n0,1\n1,\xe9\n", FIT, "line 3, column 'y'", "'é' is not a number"),
    data!("carriage returns only", b"t,y\r0,1\r1,2\r", FIT, "line 1", "carriage return"),
    // Headers and columns.
    data!("header only", b"t,y\n", FIT, "there are no rows below the header"),
    data!("no header", b"0,1\n1,2\n2,3\n", FIT, "there is no header"),
    data!(
        "unknown column",
        b"t,u,Y1\n0,1,2\n",
        FIT,
        "there is no column 'y'; did you mean 'Y1'? (columns: t, u, Y1)"
    ),
    data!("column twice in the file", b"y,y\n0,1\n1,2\n", FIT, "2 columns have the name 'y'"),
    option!(
        "column asked for twice",
        &["fit", "data.csv", "--y", "y", "--u", "y"],
        "data.csv: column 'y' is named twice, as output and as input"
    ),
    option!(
        "no output",
        &["fit", "data.csv", "--u", "u"],
        "data.csv: no output is named",
        "--y y",
        "there are: t, u, y"
    ),
    option!(
        "column of another name",
        &["fit", "data.csv", "--y", "y", "--u", "uu"],
        "data.csv: there is no column 'uu'; did you mean 'u'?"
    ),
    option!(
        "time column that is not there",
        &["fit", "data.csv", "--y", "y", "--time", "tme"],
        "there is no column 'tme'"
    ),
    // Rows and fields.
    data!("short row", b"t,y\n0,1\n1\n2,3\n", FIT, "line 3: 1 field, but the header names 2"),
    data!(
        "long row",
        b"t,y\n0,1\n1,2,3\n",
        FIT,
        "line 3: 3 fields, but the header names 2",
        "decimal commas?"
    ),
    data!(
        "decimal commas and points",
        b"t;y\r\n0;1,5\r\n1;2.5\r\n",
        FIT,
        "line 2, column 'y': '1,5' has a decimal comma, but '2.5' a decimal point"
    ),
    data!(
        "thousands or decimals",
        b"t\ty\r\n0\t1,500\r\n1\t2,500\r\n",
        FIT,
        "line 2, column 'y': '1,500' may be a decimal number or one in thousands"
    ),
    data!("text", b"t,y\n0,1\n1,high\n", FIT, "line 3, column 'y': 'high' is not a number", "write NA"),
    data!(
        "text with a line break",
        b"t,y\n0,1\n1,\"a\nb\"\n",
        FIT,
        "line 3, column 'y': 'a b' is not a number"
    ),
    data!("text after blank lines", b"t,y\r\n0,1\r\n\r\n\r\n1,x\r\n", FIT, "line 5, column 'y': 'x'"),
    data!("infinity", b"t,y\n0,1\n1,inf\n", FIT, "line 3, column 'y': 'inf' is not a finite number"),
    data!("too large", b"t,y\n0,1\n1,1e999\n", FIT, "line 3, column 'y': '1e999' is not a finite number"),
    data!("missing input", b"t,u,y\n0,1,1\n1,,2\n2,1,1\n", FIT_U, "line 3, column 'u': the input is missing"),
    data!("NaN input", b"t,u,y\n0,1,1\n1,NaN,2\n2,1,1\n", FIT_U, "line 3, column 'u': the input is missing"),
    data!("open quote", b"t,y\n0,1\n1,\"2\n2,3\n", FIT, "line 3: a quote is opened here and never closed"),
    data!("blank line in one column", b"y\n1\n\n2\n", FIT, "line 3: a blank line: write NA"),
    data!("one row", b"t,y\n0,1\n", FIT, "line 2: there is only one row"),
    // Times.
    data!(
        "unsorted times",
        b"t,y\n0,1\n2,1\n1,1\n",
        FIT_T,
        "line 4, column 't': the time 1 comes after 2: sort"
    ),
    data!(
        "repeated times",
        b"t,y\n0,1\n1,1\n1,1\n",
        FIT_T,
        "line 4, column 't': the time 1 is the same",
        "--sequence"
    ),
    data!(
        "irregular steps",
        b"t,y\n0,1\n1,1\n2,1\n3.4142,1\n5.1462,1\n6.2,1\n7.33,1\n",
        FIT_T,
        "line 5, column 't': the time step is 1.414",
        "resample"
    ),
    data!(
        "a very long gap",
        b"t,y\n0,1\n1,1\n2,1\n5000000,1\n5000001,1\n",
        FIT_T,
        "line 5, column 't': 4999997 rows are missing before this one",
        "--sequence"
    ),
    data!(
        "times beside the grid",
        b"t,y\n0,1\n1,1\n2.4,1\n",
        &["fit", "data.csv", "--y", "y", "--time", "t", "--dt", "1"],
        "line 4, column 't': the time 2.4 is not on the grid with steps of 1"
    ),
    data!(
        "two runs joined",
        b"t,y\n0,1\n1,1\n2,1\n0,1\n1,1\n",
        FIT,
        "line 5, column 't': the time goes back here: if a new run begins",
        "--sequence"
    ),
    data!(
        "two labelled runs joined",
        b"run,y\na,1\na,1\nb,2\nb,1\n",
        FIT,
        "line 4, column 'run': this column labels 2 runs, which must not be joined: add --sequence run"
    ),
    data!("time missing", b"t,y\n0,1\n,1\n2,1\n", FIT_T, "line 3, column 't': the time is missing"),
    data!(
        "time that is none",
        b"t,y\n0,1\nsoon,1\n",
        FIT_T,
        "line 3, column 't': 'soon' is neither a number nor a date"
    ),
    data!(
        "impossible date",
        b"t,y\n2023-02-28,1\n2023-02-29,1\n",
        FIT_T,
        "line 3, column 't': '2023-02-29' is neither"
    ),
    data!(
        "dates and numbers",
        b"t,y\n2023-02-28,1\n7,1\n",
        FIT_T,
        "line 3, column 't': '7' is a number, but the times before it are dates"
    ),
    option!(
        "negative dt",
        &["fit", "data.csv", "--y", "y", "--dt", "-1"],
        "data.csv: the sampling time dt = -1 must be a positive number"
    ),
    option!(
        "dt that is no number",
        &["fit", "data.csv", "--y", "y", "--dt", "fast"],
        "--dt fast: data.dt: expected a number"
    ),
    // Sequences and choices of rows.
    data!(
        "sequence in pieces",
        b"s,y\na,1\na,1\nb,1\nb,1\na,1\n",
        FIT_SEQ,
        "line 6, column 's': sequence 'a' goes on here"
    ),
    data!("sequence of one row", b"s,y\na,1\na,1\nb,1\n", FIT_SEQ, "line 4: sequence 'b' has only one row"),
    data!(
        "label missing",
        b"s,y\na,1\n,1\n",
        FIT_SEQ,
        "line 3, column 's': the label of the sequence is missing"
    ),
    data!(
        "sequences with different steps",
        b"s,t,y\na,0,1\na,1,1\na,2,1\nb,0,1\nb,2,1\nb,4,1\n",
        &["fit", "data.csv", "--y", "y", "--sequence", "s", "--time", "t"],
        "line 5, column 't': the time step of sequence 'b' is 2, that of the first is 1"
    ),
    option!(
        "rows beyond the end",
        &["fit", "data.csv", "--y", "y", "--rows", "2:9"],
        "data.csv: rows 2 to 9 are asked for, but there are 5"
    ),
    option!(
        "rows from zero",
        &["fit", "data.csv", "--y", "y", "--rows", "0:3"],
        "data.csv: rows 0 to 3 are asked for, but rows count from 1"
    ),
    option!("rows backwards", &["fit", "data.csv", "--y", "y", "--rows", "4:2"], "data.csv: rows 4 to 2"),
    option!(
        "every zero",
        &["fit", "data.csv", "--y", "y", "--every", "0"],
        "data.csv: every = 0 keeps no row"
    ),
    option!(
        "thinned to one row",
        &["fit", "data.csv", "--y", "y", "--every", "9"],
        "data.csv, line 2: there is only one row"
    ),
    // Outputs that do not fit the sensor.
    data!(
        "counts that are none",
        b"t,y\n0,1\n1,2\n2,2.5\n",
        &["fit", "data.csv", "--y", "y", "--sensor", "poisson"],
        "line 4, column 'y'"
    ),
    data!(
        "neither 0 nor 1",
        b"t,y\n0,1\n1,0\n2,2\n",
        &["fit", "data.csv", "--y", "y", "--sensor", "bernoulli"],
        "line 4, column 'y'"
    ),
    // Run files that are no TOML.
    csv("run file not found", &[("data.csv", GOOD)], MODEL, &["model.toml: there is no such file"]),
    csv(
        "run file not UTF-8",
        &[("data.csv", GOOD), ("model.toml", b"[data]\ny = '\xe9'")],
        MODEL,
        &["model.toml", "not UTF-8"],
    ),
    toml!("no TOML", "kernel se\n", "not valid TOML", "(line 4)"),
    toml!("open bracket", "[model\n", "not valid TOML", "(line 4)"),
    toml!("key twice", "[model]\nstates = 1\nstates = 2\n", "not valid TOML: duplicate key", "(line 6)"),
    toml!("open string", "[model]\nkernel = \"se\n", "not valid TOML", "(line 5)"),
    csv(
        "run file without data",
        &[("model.toml", b"[data]\ny = 'y'\n")],
        &["fit", "model.toml"],
        &["model.toml: data.file: no data: write file = \"data.csv\"", "(line 1)"],
    ),
    csv(
        "run file with data that are not there",
        &[("model.toml", b"[data]\nfile = 'dta.csv'\ny = 'y'\n")],
        &["fit", "model.toml"],
        &["dta.csv: there is no such file"],
    ),
    // Keys and values.
    toml!("unknown section", "[modle]\nstates = 1\n", "modle: unknown key; did you mean 'model'? (line 4)"),
    toml!(
        "unknown key",
        "[model]\nkernal = 'se'\n",
        "model.kernal: unknown key; did you mean 'kernel'? (line 5)"
    ),
    toml!(
        "unknown sampler key",
        "[sampler]\ndrawz = 3\n",
        "sampler.drawz: unknown key; did you mean 'draws'? (line 5)"
    ),
    toml!(
        "unknown key deep inside",
        "[model]\nkernel = { se = {} }\n",
        "model.kernel: unknown name 'se'",
        "(line 5)"
    ),
    toml!(
        "unknown key in a prior",
        "[model]\nkernel = { linear = { sigma = { normal = { men = 1, sd = 1 } } } }\n",
        "model.kernel.linear.sigma.normal.men: unknown key; did you mean 'mean'? (line 5)"
    ),
    toml!(
        "wrong type",
        "[sampler]\ndraws = 'many'\n",
        "sampler.draws: expected a whole number, zero or more, found the text \"many\" (line 5)"
    ),
    toml!(
        "negative count",
        "[sampler]\ndraws = -5\n",
        "sampler.draws: expected a whole number",
        "found the number -5 (line 5)"
    ),
    toml!(
        "fraction for a count",
        "[sampler]\nchains = 2.5\n",
        "sampler.chains: expected a whole number",
        "found the number 2.5 (line 5)"
    ),
    toml!(
        "table for a number",
        "[sampler.draws]\nn = 5\n",
        "sampler.draws: expected a whole number",
        "found a table (line 4)"
    ),
    toml!("no draws", "[sampler]\ndraws = 0\n", "sampler.draws: must be at least one (line 5)"),
    toml!(
        "one particle",
        "[sampler]\nparticles = 1\n",
        "sampler.particles: the conditional filter needs at least two (line 5)"
    ),
    toml!(
        "unknown proposal",
        "[sampler]\nproposal = 'adpted'\n",
        "sampler.proposal: unknown name 'adpted'; did you mean 'adapted'?",
        "(line 5)"
    ),
    toml!(
        "adapted proposal for counts",
        "[model]\nsensor = { mean = 'exp(x)' }\n[sampler]\nproposal = 'adapted'\n",
        "sampler.proposal: the adapted proposal needs a linear-Gaussian sensor (line 7)"
    ),
    // Models.
    toml!("no states", "[model]\nstates = 0\n", "model.states: a model needs at least one state (line 5)"),
    toml!("too many states", "[model]\nstates = 1000000000\n", "model.states: more than 100 states (line 5)"),
    toml!(
        "states counted twice",
        "[model]\nstates = 2\n[[model.state]]\n",
        "model.states: 2 states, but 1 [[model.state]] tables",
        "(line 5)"
    ),
    option!(
        "fewer states than outputs",
        &["fit", "data.csv", "--y", "y,u", "--states", "1"],
        "model.sensor: 2 outputs but only 1 states to show"
    ),
    toml!(
        "unknown kernel",
        "[model]\nkernel = 'mattern32'\n",
        "model.kernel: there is no kernel 'mattern32'; did you mean 'matern32'?",
        "(line 5)"
    ),
    toml!(
        "kernel without end",
        "[model]\nkernel = 'se +'\n",
        "model.kernel: kernel \"se +\": expected the name of a kernel at column 5, found the end (line 5)"
    ),
    toml!(
        "kernel on nothing",
        "[model]\nkernel = 'se(x3)'\n",
        "model.kernel.active: there is no component \"x3\"",
        "(line 5)"
    ),
    toml!(
        "kernel without a basis",
        "[model]\nkernel = 'periodic'\ndynamics = 'hilbert(10)'\n",
        "model.kernel",
        "(line 5)"
    ),
    toml!(
        "basis without a size",
        "[model]\ndynamics = 'fic'\n",
        "model.dynamics: write \"fic(n)\"",
        "(line 5)"
    ),
    toml!(
        "basis without functions",
        "[model]\ndynamics = 'hilbert(0)'\n",
        "model.dynamics: at least one function is needed (line 5)"
    ),
    toml!(
        "basis without end",
        "[model]\ndynamics = { fic = { inducing = { grid = [9999999999, 9999999999] } } }\n",
        "model.dynamics: a basis of more than 1000000 functions (line 5)"
    ),
    toml!(
        "unknown sensor",
        "[model]\nsensor = 'possion'\n",
        "model.sensor: unknown name 'possion'; did you mean 'poisson'?",
        "(line 5)"
    ),
    toml!(
        "normal prior of a noise",
        "[model]\nprocess_noise = 'normal(0, 1)'\n",
        "model.process_noise",
        "negative",
        "(line 5)"
    ),
    toml!(
        "prior without its parameters",
        "[model]\nprocess_noise = 'log_normal(1)'\n",
        "model.process_noise: \"log_normal(1)\" is no prior: write \"log_normal(median, sigma)\"",
        "(line 5)"
    ),
    toml!(
        "noise of zero",
        "[model]\nprocess_noise = 0\n",
        "model.process_noise",
        "must be positive",
        "(line 5)"
    ),
    toml!(
        "initial state of another size",
        "[model]\ninitial = [0, 0, 0]\n",
        "model.initial.fixed: 3 numbers for 1 states (line 5)"
    ),
    toml!(
        "function and kernel",
        "[model]\nkernel = 'se'\nfunction = 'x'\n",
        "model.function: a known transition has neither kernel nor mean",
        "(line 6)"
    ),
    toml!(
        "lag of itself",
        "[[model.state]]\n[[model.state]]\nlag_of = 'x2'\n",
        "model.state[2].lag",
        "(line 5)"
    ),
    toml!(
        "lag of nothing",
        "[[model.state]]\n[[model.state]]\nlag_of = 'y1'\n",
        "model.state[2].lag_of: expected a state, such as \"x1\", found the text \"y1\" (line 6)"
    ),
    toml!(
        "symmetry of a state that is seen",
        "[model]\nsymmetries = [{ flip = 'x1', orientation = 'mean of x1' }]\n",
        "model.symmetries[1]: a flipped state is shown by the sensor (line 5)"
    ),
    toml!(
        "orientation in other words",
        "[model]\nsymmetries = { flip = 'x1', orientation = 'up' }\n",
        "model.symmetries.orientation: \"up\" is no orientation",
        "(line 5)"
    ),
    // Formulas.
    toml!("formula without end", "[model]\nmean = 'x + '\n", "model.mean", "(line 5)"),
    toml!(
        "formula with an unknown name",
        "[model]\nmean = 'a*x'\n",
        "model.mean",
        "unknown name 'a'",
        "(line 5)"
    ),
    toml!("formula with a chain of powers", "[model]\nmean = '2^3^2'\n", "model.mean", "(line 5)"),
    toml!("formula that calls out", "[model]\nmean = 'system(x)'\n", "model.mean", "system", "(line 5)"),
    toml!(
        "parameter that no formula uses",
        "[model.parameters]\na = 'normal(0, 1)'\n",
        "model.parameters.a: is not used",
        "(line 5)"
    ),
    toml!(
        "parameter with a reserved name",
        "[model]\nmean = 'pi*x'\nparameters = { pi = 1 }\n",
        "model.parameters.pi",
        "(line 6)"
    ),
    toml!(
        "too few sensor formulas",
        "[model]\nsensor = { mean = ['x', 'x'] }\n",
        "model.sensor: 2 formulas for 1 outputs (line 5)"
    ),
    toml!(
        "sensor formula with an output",
        "[model]\nsensor = { mean = 'y + x' }\n",
        "model.sensor",
        "'y' is an output",
        "(line 5)"
    ),
    // Options.
    option!(
        "set without a value",
        &["fit", "data.csv", "--y", "y", "--set", "sampler.draws"],
        "--set sampler.draws: write key=value"
    ),
    option!(
        "set of an unknown key",
        &["fit", "data.csv", "--y", "y", "--set", "sampler.drwas=3"],
        "--set sampler.drwas=3: sampler.drwas: unknown key; did you mean 'draws'?"
    ),
    option!(
        "set of an unknown section",
        &["fit", "data.csv", "--y", "y", "--set", "samplr.draws=3"],
        "--set samplr.draws=3: samplr: unknown key; did you mean 'sampler'?"
    ),
    option!(
        "set of a wrong type",
        &["fit", "data.csv", "--y", "y", "--set", "sampler.draws=soon"],
        "--set sampler.draws=soon: sampler.draws: expected a whole number, zero or more, found the text \"soon\""
    ),
    option!(
        "set of a broken list",
        &["fit", "data.csv", "--y", "y", "--set", "data.rows=[1,"],
        "--set data.rows=[1,: data.rows: not a valid TOML value"
    ),
    option!(
        "states that are no number",
        &["fit", "data.csv", "--y", "y", "--states", "two"],
        "--states two: model.states: expected a whole number"
    ),
    option!(
        "kernel that is none",
        &["fit", "data.csv", "--y", "y", "--kernel", "sse"],
        "--kernel sse: model.kernel: there is no kernel 'sse'; did you mean 'se'?"
    ),
    option!(
        "seed beyond files",
        &["fit", "data.csv", "--y", "y", "--set", "sampler.seed=18446744073709551615"],
        "sampler.seed: must be at most 9223372036854775807"
    ),
    option!(
        "range of bands for another number of outputs",
        &["fit", "data.csv", "--y", "y", "--set", "calibration={scale=1, range=[[0, 1], [0, 1]]}"],
        "calibration.range: 2 pairs for 1 outputs"
    ),
    option!(
        "range of bands that is empty",
        &["fit", "data.csv", "--y", "y", "--set", "calibration={scale=1, range=[[1, 1]]}"],
        "calibration.range: 1 is not less than 1"
    ),
    option!(
        "memory",
        &[
            "fit",
            "data.csv",
            "--y",
            "y",
            "--set",
            "sampler.max_memory_mb=0",
            "--set",
            "sampler.particles=100000"
        ],
        "sampler: this run needs about",
        "hilbert(40)"
    ),
];
