//! A functional mock-up unit for co-simulation (FMI 3.0): the C sources with the functions of the standard around them, and
//! the description of the variables. The model is discrete in time: a communication step is one or more steps of the model,
//! through which inputs are held.

use std::fmt::Write as _;

use crate::File;
use crate::archive::archive;
use crate::c;
use crate::error::ExportError;
use crate::model::{Model, Precision};

const TEMPLATE: &str = include_str!("fmi3.c");

/// A variable of the unit.
struct Variable {
    name: String,
    reference: u32,
    attributes: String,
    description: String,
}

/// Sources of the shared library of a unit: the model, and `fmi3.c`. What they are compiled to goes into [`unit()`].
pub fn sources(model: &Model) -> Result<Vec<File>, ExportError> {
    if model.sensor.moments.is_none() {
        let why = "its mean is not known; a unit has the mean of the outputs";
        return Err(ExportError::refused("a sensor that is given by its log density", why));
    }
    if model.options.precision == Precision::Float {
        return Err(ExportError::option("precision", "units have 64-bit variables: use double"));
    }
    let name = &model.options.name;
    let mut files: Vec<File> = c::export(model)?
        .into_iter()
        .filter(|file| file.name == format!("{name}.h") || file.name == format!("{name}.c"))
        .collect();
    files.push(File::text("fmi3.c", source(model)));
    Ok(files)
}

/// The unit as one file. `binaries` are compiled libraries by platform, such as `x86_64-linux` with its bytes; without any, a
/// tool that imports the unit compiles the sources.
pub fn unit(model: &Model, binaries: &[(String, Vec<u8>)]) -> Result<File, ExportError> {
    let name = &model.options.name;
    let mut entries = vec![("modelDescription.xml".to_owned(), description(model).into_bytes())];
    for file in sources(model)? {
        entries.push((format!("sources/{}", file.name), file.bytes));
    }
    entries.push(("sources/buildDescription.xml".to_owned(), build_description(name).into_bytes()));
    for (platform, bytes) in binaries {
        let ending = match platform.as_str() {
            windows if windows.ends_with("windows") => "dll",
            mac if mac.ends_with("darwin") => "dylib",
            _ => "so",
        };
        entries.push((format!("binaries/{platform}/{name}.{ending}"), bytes.clone()));
    }
    Ok(File { name: format!("{name}.fmu"), bytes: archive(&entries) })
}

/// Time from one row of the model to the next; one where it is not known.
fn step(model: &Model) -> f64 {
    model.distilled.rows.sampling_time.unwrap_or(1.0)
}

/// A number that changes whenever the model does.
fn token(model: &Model) -> Result<String, ExportError> {
    let text: Vec<u8> = c::export(model)?.into_iter().flat_map(|file| file.bytes).collect();
    // FNV-1a, twice with different starts.
    let hash = |start: u64| {
        text.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    };
    Ok(format!("{{{:016x}{:016x}}}", hash(0xcbf2_9ce4_8422_2325), hash(0x9747_b28c_8422_2325)))
}

fn escape(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars()
        .map(plain)
        .collect::<String>()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// First reference of each group of variables, in this order: inputs, states, their sds of f, outputs, their sds, first states.
struct References {
    inputs: u32,
    states: u32,
    state_sds: u32,
    outputs: u32,
    output_sds: u32,
    first: u32,
    flags: u32,
    scenario: u32,
}

fn references(model: &Model) -> References {
    let (n_x, n_u, n_y) = model.sizes();
    let (n_x, n_u, n_y) = (n_x as u32, n_u as u32, n_y as u32);
    let inputs = 1;
    let states = inputs + n_u;
    let state_sds = states + n_x;
    let outputs = state_sds + n_x;
    let output_sds = outputs + n_y;
    let first = output_sds + n_y;
    References {
        inputs,
        states,
        state_sds,
        outputs,
        output_sds,
        first,
        flags: first + n_x,
        scenario: first + n_x + 1,
    }
}

fn description(model: &Model) -> String {
    let (d, at, name) = (&model.distilled, references(model), &model.options.name);
    let middle: Vec<f64> = d.visited.iter().map(|(low, high)| 0.5 * (low + high)).collect();
    let first = model.initial().map_or_else(|| middle[..d.n_x].to_vec(), |(mean, _)| mean);
    let unit = d.rows.time_unit.as_ref().map_or(String::new(), |unit| format!(", in {unit}"));
    let mut seen: Vec<String> = vec!["time".into(), "flags".into(), "scenario".into()];
    let mut unique = |wanted: String| {
        let mut name = wanted.clone();
        let mut n = 2;
        while seen.contains(&name) {
            name = format!("{wanted} ({n})");
            n += 1;
        }
        seen.push(name.clone());
        name
    };
    let mut variables: Vec<Variable> = Vec::new();
    let mut add = |name: String, reference: u32, attributes: String, description: String| {
        variables.push(Variable { name, reference, attributes, description });
    };
    for (c, input) in d.input_names.iter().enumerate() {
        let (low, high) = d.visited[d.n_x + c];
        add(
            unique(input.clone()),
            at.inputs + c as u32,
            format!("causality=\"input\" variability=\"discrete\" start=\"{:?}\"", middle[d.n_x + c]),
            format!("input, training data from {low:?} to {high:?}"),
        );
    }
    let calculated = "causality=\"output\" variability=\"discrete\" initial=\"calculated\"";
    let state_name = |d: &str| format!("state {d}");
    for (i, state) in d.state_names.iter().enumerate() {
        let (low, high) = d.visited[i];
        let text = format!("state, training data from {low:?} to {high:?}");
        add(unique(state_name(state)), at.states + i as u32, calculated.into(), text);
    }
    for (i, state) in d.state_names.iter().enumerate() {
        let text =
            format!("standard deviation of what is not known of f for {state}, at this state and input");
        add(unique(format!("sd of f for {state}")), at.state_sds + i as u32, calculated.into(), text);
    }
    for (k, output) in d.output_names.iter().enumerate() {
        add(unique(output.clone()), at.outputs + k as u32, calculated.into(), "mean of the output".into());
    }
    for (k, output) in d.output_names.iter().enumerate() {
        let text = format!("standard deviation of {output} given the state: noise of the sensor");
        add(unique(format!("sd of {output}")), at.output_sds + k as u32, calculated.into(), text);
    }
    for (i, state) in d.state_names.iter().enumerate() {
        add(
            unique(format!("first {state}")),
            at.first + i as u32,
            format!(
                "causality=\"parameter\" variability=\"fixed\" initial=\"exact\" start=\"{:?}\"",
                first[i]
            ),
            "state at the start".into(),
        );
    }
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<fmiModelDescription fmiVersion=\"3.0\" modelName=\"{name}\" instantiationToken=\"{}\" \
         description=\"State-space model learned from data; a step takes {:?}{}\" generationTool=\"gpssm {}\" \
         variableNamingConvention=\"flat\">",
        token(model).unwrap_or_default(),
        step(model),
        escape(&unit),
        env!("CARGO_PKG_VERSION")
    );
    let _ = writeln!(
        out,
        "  <CoSimulation modelIdentifier=\"{name}\" canHandleVariableCommunicationStepSize=\"true\" \
         fixedInternalStepSize=\"{:?}\"/>",
        step(model)
    );
    let _ = writeln!(
        out,
        "  <LogCategories>\n    <Category name=\"logStatusWarning\" description=\"Extrapolation beyond the training data, numbers \
         that are not finite\"/>\n    <Category name=\"logStatusError\" description=\"Wrong use\"/>\n  </LogCategories>"
    );
    let _ = writeln!(out, "  <DefaultExperiment startTime=\"0\" stepSize=\"{:?}\"/>", step(model));
    out.push_str("  <ModelVariables>\n    <Float64 name=\"time\" valueReference=\"0\" causality=\"independent\" variability=\"continuous\"/>\n");
    for variable in &variables {
        let _ = writeln!(
            out,
            "    <Float64 name=\"{}\" valueReference=\"{}\" {} description=\"{}\"/>",
            escape(&variable.name),
            variable.reference,
            variable.attributes,
            escape(&variable.description)
        );
    }
    let _ = writeln!(
        out,
        "    <UInt32 name=\"flags\" valueReference=\"{}\" {calculated} description=\"1: outside of the training data, 2: not finite\"/>",
        at.flags
    );
    if !d.scenarios.is_empty() {
        let _ = writeln!(
            out,
            "    <UInt32 name=\"scenario\" valueReference=\"{}\" causality=\"parameter\" variability=\"fixed\" initial=\"exact\" \
             start=\"0\" min=\"0\" max=\"{}\" description=\"0: mean of f; k: posterior function k\"/>",
            at.scenario,
            d.scenarios.len()
        );
    }
    out.push_str("  </ModelVariables>\n  <ModelStructure>\n");
    let calculated: Vec<u32> = (at.states..at.first).chain([at.flags]).collect();
    for kind in ["Output", "InitialUnknown"] {
        for reference in &calculated {
            let _ = writeln!(out, "    <{kind} valueReference=\"{reference}\"/>");
        }
    }
    out.push_str("  </ModelStructure>\n</fmiModelDescription>\n");
    out
}

fn build_description(name: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<fmiBuildDescription fmiVersion=\"3.0\">
  <BuildConfiguration modelIdentifier=\"{name}\">
    <SourceFileSet language=\"C99\">
      <SourceFile name=\"{name}.c\"/>
      <SourceFile name=\"fmi3.c\"/>
    </SourceFileSet>
    <Library name=\"m\"/>
  </BuildConfiguration>
</fmiBuildDescription>
"
    )
}

fn source(model: &Model) -> String {
    let (at, name) = (references(model), &model.options.name);
    let (n_x, n_u, n_y) = model.sizes();
    let next = if model.distilled.scenarios.is_empty() {
        format!("{name}_f(unit->x, unit->u, next, NULL)")
    } else {
        format!(
            "(unit->scenario == 0U) ? {name}_f(unit->x, unit->u, next, NULL) : \
             {name}_scenario(unit->scenario - 1U, unit->x, unit->u, next, NULL, NULL)"
        )
    };
    TEMPLATE
        .replace("@NAME@", name)
        .replace("@NX@", &n_x.to_string())
        .replace("@NU@", &n_u.to_string())
        .replace("@ROOM@", &n_u.max(1).to_string())
        .replace("@NY@", &n_y.to_string())
        .replace("@INPUTS@", &at.inputs.to_string())
        .replace("@STATES@", &at.states.to_string())
        .replace("@STATE_SDS@", &at.state_sds.to_string())
        .replace("@OUTPUTS@", &at.outputs.to_string())
        .replace("@OUTPUT_SDS@", &at.output_sds.to_string())
        .replace("@FIRST@", &at.first.to_string())
        .replace("@FLAGS@", &at.flags.to_string())
        .replace("@SCENARIO@", &at.scenario.to_string())
        .replace("@SCENARIOS@", &model.distilled.scenarios.len().to_string())
        .replace("@STEP@", &format!("{:?}", step(model)))
        .replace("@NEXT@", &next)
        .replace("@U_START@", &{
            let middle =
                model.distilled.visited[n_x..].iter().map(|(low, high)| format!("{:?}", 0.5 * (low + high)));
            let middle: Vec<String> = middle.collect();
            if middle.is_empty() { "0.0".into() } else { middle.join(", ") }
        })
        .replace("@X_START@", &{
            let first = model.initial().map_or_else(
                || model.distilled.visited[..n_x].iter().map(|(low, high)| 0.5 * (low + high)).collect(),
                |(mean, _)| mean,
            );
            first.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(", ")
        })
        .replace("@TOKEN@", &token(model).unwrap_or_default())
}
