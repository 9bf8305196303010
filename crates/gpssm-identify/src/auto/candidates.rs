//! Which models are tried.

use crate::baseline::{Arx, MOST_ORDER};
use gpssm::{Record, Sequence};

use super::{Candidate, Given, Kernel, Sensor, States, screen, sensors, trial};
use crate::layout::Layout;
use crate::linear::LinearStateSpace;

/// Past outputs and past inputs.
type Shape = (usize, usize);

/// Multiply-adds of all trials: about a minute on two cores.
const BUDGET: f64 = 1e12;
/// Output and input lags of candidates beside those of linear models, the simpler first.
const SHAPES: [Shape; 6] = [(0, 0), (1, 1), (1, 3), (2, 4), (4, 5), (9, 9)];
/// The same where states are drawn: noise is told from the past by the states themselves, so few past values do.
const DRAWN: [Shape; 3] = [(0, 0), (1, 1), (2, 2)];
/// The same where moduli of states are seen: without past values a state that goes through zero is not known from one that turns.
const MODULUS: [Shape; 3] = [(1, 1), (2, 2), (3, 3)];
/// Largest order of a linear state-space model that is corrected: each state has a function of its own.
const MOST_CORRECTED: usize = 4;
/// As many of them are tried on every row of a record that is sampled fast.
const FAST_SHAPES: usize = 4;
/// The same for thinned records.
const THINNED: [Shape; 3] = [(1, 2), (2, 3), (3, 3)];

/// What is tried, as much of it as the budget allows, what stands first before the rest.
pub(super) fn candidates(
    given: &Given,
    record: &Record,
    notes: &mut Vec<String>,
) -> (Vec<Candidate>, Option<LinearStateSpace>) {
    let has_inputs = record.n_u() > 0;
    let delay = match (given.delay, has_inputs) {
        (Some(delay), _) => delay,
        (None, true) => {
            let delay = screen::delay(record);
            notes.push(match delay {
                0 => "inputs act on outputs in the same row (delay 0)".into(),
                1 => "inputs act one row later (delay 1)".into(),
                _ => format!("inputs act {delay} rows later (delay {delay})"),
            });
            delay
        }
        (None, false) => 1,
    };
    // Under feedback an input tells its own row's output without acting on it, so later inputs stay in the list.
    let at_once = given.delay.is_none() && has_inputs && delay == 1 && screen::acts_at_once(record);
    if at_once {
        notes.push(
            "inputs are correlated with outputs in the same row: delay 0 is tried as well; give --delay 1 if a controller \
             computes the inputs from the outputs"
                .into(),
        );
    }
    let delays = if at_once { vec![1, 0] } else { vec![delay] };
    let thinnings = if given.thinned { Vec::new() } else { screen::thinnings(record) };
    if let Some(last) = thinnings.last() {
        notes.push(format!("outputs change little between rows: thinning up to one row in {last} is tried"));
    }
    let kernels = match &given.kernel {
        Some(kernel) => vec![Kernel::Given(kernel.clone())],
        None => vec![Kernel::Linear, Kernel::Affine, Kernel::Smooth],
    };
    let rows: usize = record.sequences().iter().map(Sequence::n_rows).sum();
    let mut candidates: Vec<Candidate> = Vec::new();
    let linear = LinearStateSpace::fit(record);
    // Where lags, delay or kernel are asked for it is another model.
    let open = Given { calibrated: given.calibrated, ..Given::default() };
    if let Some(linear) = linear.as_ref().filter(|_| *given == open) {
        let order = linear.order();
        let lags = (order / record.n_y()).max(1) - 1;
        let mut add = |states: States| {
            let (layout, kernel, sensor) = (linear.layout(), Kernel::Linear, Sensor::Gaussian);
            candidates.push(Candidate { lags, layout, kernel, states, sensor });
        };
        add(States::Linear { order });
        if order <= MOST_CORRECTED {
            add(States::Corrected { order });
        }
    }
    let mut add_seen = |sensor: Sensor,
                        states: States,
                        kernels: &[Kernel],
                        (lags, input_lags): Shape,
                        every: usize,
                        delay: usize| {
        if given.states.is_some_and(|given| given != states) {
            return;
        }
        let lags = given.lags.unwrap_or(lags);
        let input_lags = given.input_lags.unwrap_or(if has_inputs { input_lags } else { 0 });
        // Enough rows for each coefficient of the linear part, with a part of them held out.
        let regressors = (lags + 1) * record.n_y() + (input_lags + 1) * record.n_u();
        if given.lags.is_none() && rows / every < 5 * regressors {
            return;
        }
        for kernel in kernels {
            let layout = Layout { input_lags, delay, every };
            let candidate = Candidate { lags, layout, kernel: kernel.clone(), states, sensor };
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
    };
    let smooth = kernels.last().map_or(&[][..], std::slice::from_ref);
    // Where rows are alike, many of them in a row tell little.
    if given.states.is_none() && !given.thinned {
        for sensor in sensors::noticed(record, notes) {
            let (shapes, kernels): (&[Shape], &[Kernel]) = match sensor {
                Sensor::Modulus => {
                    (&MODULUS, if kernels.len() > 1 { &[Kernel::Linear, Kernel::Smooth] } else { &kernels })
                }
                _ => (&DRAWN[..2], smooth),
            };
            for shape in shapes {
                add_seen(sensor, States::Drawn, kernels, *shape, 1, delays[0]);
            }
        }
    }
    let mut add = |states: States, kernels: &[Kernel], shape: Shape, every: usize, delay: usize| {
        add_seen(Sensor::Gaussian, states, kernels, shape, every, delay);
    };
    let n_shapes = if thinnings.is_empty() { SHAPES.len() } else { FAST_SHAPES };
    // The linear models that one would compare with must be among them.
    let arx = [Arx::fit_for_free_runs(record, MOST_ORDER), Arx::fit(record, MOST_ORDER)];
    for order in arx.into_iter().flatten().map(|arx| arx.order()) {
        for &delay in &delays {
            let delay = given.delay.unwrap_or(delay.min(1));
            add(States::Held, &kernels, (order - 1, order.saturating_sub(delay)), 1, delay);
        }
    }
    if let Some(linear) = &linear {
        // As a model of past outputs, noise enters at the newest one alone.
        let (order, delay) = (linear.order(), given.delay.unwrap_or(delay.min(1) + linear.shift()));
        add(States::Drawn, &kernels[..kernels.len().min(2)], (order - 1, order - 1), 1, delay);
    }
    for shape in DRAWN {
        delays.iter().for_each(|&delay| add(States::Drawn, smooth, shape, 1, delay));
    }
    for shape in &SHAPES[..n_shapes] {
        delays.iter().for_each(|&delay| add(States::Held, &kernels, *shape, 1, delay));
    }
    for &every in &thinnings {
        // A dead time in rows of the file is shorter in thinned rows; the first of them covers it.
        THINNED.iter().for_each(|shape| add(States::Held, &kernels, *shape, every, delay));
        add(States::Drawn, smooth, THINNED[0], every, delay);
    }
    for candidate in candidates.iter_mut().filter(|candidate| candidate.layout.every > 1) {
        let layout = &mut candidate.layout;
        layout.delay = layout.delay.div_ceil(layout.every).min(layout.delay);
    }
    if candidates.is_empty() {
        let layout = Layout { input_lags: 0, delay, every: 1 };
        let states = given.states.unwrap_or(States::Held);
        let sensor = Sensor::Gaussian;
        let plain = |kernel: &Kernel| Candidate { lags: 0, layout, kernel: kernel.clone(), states, sensor };
        candidates.extend(kernels.iter().map(plain));
    }
    (within_budget(candidates, record), linear)
}

/// As many of the candidates as the budget allows, at least one.
fn within_budget(candidates: Vec<Candidate>, record: &Record) -> Vec<Candidate> {
    let mut left = BUDGET;
    let mut kept = Vec::new();
    for candidate in candidates {
        let cost = trial::cost(&candidate, record);
        if kept.is_empty() || cost <= left {
            left -= cost;
            kept.push(candidate);
        }
    }
    kept
}
