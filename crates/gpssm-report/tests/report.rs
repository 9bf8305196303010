//! The report as a whole: same bytes for the same input, well-formed, nothing from outside, bounded in size.
//!
//! The draws are made by hand: what is tested is the page, not the sampler.

mod xml;

use gpssm::convergence::verdict;
use gpssm::mcmc::{ChainDraws, SweepInfo};
use gpssm::model::{
    DynamicsSpec, FunctionSpec, Predictor, ProcessNoiseSpec, SensorSpec, TransitionSpec, Value,
};
use gpssm::{Functions, Model, Problem, Record, Sequence, Settings};
use gpssm_report::{Light, Lights, Names, ReportInput, report};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

/// Draws near what was measured, hyper-parameters near one draw of the prior.
fn draws(problem: &Problem, n_chains: usize, n_draws: usize) -> Vec<ChainDraws> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let theta = problem.table().sample(&mut rng).unwrap();
    let n_x = problem.n_x();
    (0..n_chains)
        .map(|_| {
            let mut chain = ChainDraws::default();
            for _ in 0..n_draws {
                let scaled = theta.iter().map(|v| v * rng.random_range(0.8..1.2));
                chain.theta.push(scaled.collect());
                let paths = problem.record().sequences().iter().map(|sequence| {
                    let rows = (0..sequence.n_rows()).flat_map(|t| (0..n_x).map(move |d| (t, d)));
                    rows.map(|(t, d)| {
                        let y = sequence.y(t).get(d).copied().filter(|y| y.is_finite()).unwrap_or(0.3);
                        y + rng.random_range(-0.2..0.2)
                    })
                    .collect()
                });
                let paths: Vec<Vec<f64>> = paths.collect();
                chain.paths.push(paths);
                let log_joint = rng.random_range(-5.0..5.0);
                chain.info.push(SweepInfo { log_joint, density_failures: 1, ..SweepInfo::default() });
            }
            chain
        })
        .collect()
}

fn wave(n: usize, n_y: usize, n_u: usize) -> Sequence {
    let y = (0..n).map(|t| (0..n_y).map(|k| (0.3 * (t + k) as f64).sin() + 1.0).collect()).collect();
    let u = (0..n).map(|t| (0..n_u).map(|c| (0.17 * (t + 3 * c) as f64).cos()).collect()).collect();
    Sequence::new(y, if n_u > 0 { u } else { Vec::new() }).unwrap()
}

fn problem(model: Model, record: Record) -> Problem {
    Problem::new(model, &Functions::new(), record).unwrap()
}

fn input<'a>(problem: &'a Problem, chains: &'a [ChainDraws]) -> ReportInput<'a> {
    ReportInput {
        title: "A run",
        problem,
        chains,
        names: Names::default(),
        verdict: None,
        lights: Some(Lights {
            paragraph: "A < B.".into(),
            lights: vec![Light {
                state: "bad",
                question: "Q?".into(),
                finding: "No & no.".into(),
                next: "a --b".into(),
            }],
            scores: (vec!["model".into()], vec![vec!["<x>".into()]], "Scores.".into()),
        }),
        warnings: vec!["One warning.".into()],
        facts: vec![("seed".into(), "1".into())],
        choice: None,
        configuration: Some("a = 1\n[b]\n"),
    }
}

/// The page without its one script, which is the same in all pages and stands at the end.
fn without_script(page: &str) -> String {
    let (before, after) = page.split_once("<script>").expect("one script");
    let (script, end) = after.split_once("</script>").expect("its end");
    assert!(script == include_str!("../src/page.js") && end.trim() == "</body>\n</html>");
    format!("{before}{end}")
}

fn check(page: &str) {
    let page = &without_script(page);
    let document = xml::parse(page);
    assert!(document.elements.iter().any(|element| element.name == "svg"));
    for element in &document.elements {
        for (name, value) in &element.attributes {
            assert!(name != "src" && !name.starts_with("on"), "{name}");
            if name == "href" {
                assert!(value.starts_with('#'), "{value}");
            }
            let numeric = ["x", "y", "x1", "x2", "y1", "y2", "width", "height", "viewBox", "transform", "d"];
            if numeric.contains(&name.as_str()) && element.name != "meta" {
                assert!(!value.contains("NaN") && !value.contains("inf"), "{name} {value}");
            }
            if name == "d" {
                assert!(value.chars().all(|c| "mlz .-0123456789".contains(c)), "{value}");
            }
        }
    }
    assert!(!document.text.contains("NaN"));
    assert!(
        !document
            .elements
            .iter()
            .any(|element| ["script", "img", "link", "iframe"].contains(&element.name.as_str()))
    );
    assert!(!page.contains("http"));
    assert!(!page.contains("url("));
}

fn cases() -> Vec<(&'static str, Problem)> {
    let missing = || {
        let y = (0..30).map(|t| vec![if t % 7 == 3 { f64::NAN } else { t as f64 }, 1.0]).collect();
        Sequence::new(y, Vec::new()).unwrap()
    };
    let counts: Vec<f64> = (0..40).map(|t| f64::from(t % 5)).collect();
    let lagged = Model::lagged_outputs(1, 1, 2);
    let full = Model { process_noise: ProcessNoiseSpec::Full(None), ..Model::observed(2, 0) };
    let poisson =
        Model { sensor: SensorSpec::Poisson { log_rate: Predictor::States }, ..Model::observed(1, 0) };
    vec![
        ("one state", problem(Model::observed(1, 0), wave(40, 1, 0).into())),
        ("with inputs", problem(Model::observed(1, 2), wave(40, 1, 2).into())),
        ("hidden", problem(Model::with_hidden_states(2, 1, 0), wave(40, 1, 0).into())),
        ("lags", problem(lagged, wave(40, 1, 1).into())),
        ("missing", problem(full, Record::new(vec![missing(), missing()]).unwrap())),
        ("counts", problem(poisson, Sequence::scalar(&counts, None).unwrap().into())),
    ]
}

#[test]
fn pages_are_well_formed_and_self_contained() {
    for (name, problem) in cases() {
        let chains = draws(&problem, 2, 25);
        let page = report(&input(&problem, &chains)).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&page);
        for section in ["states", "transition", "parameters", "residuals", "health", "configuration"] {
            assert!(page.contains(&format!("<section id=\"{section}\">")), "{name}: {section}");
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (_, problem) = cases().swap_remove(5);
    let chains = draws(&problem, 2, 25);
    assert_eq!(report(&input(&problem, &chains)), report(&input(&problem, &chains)));
}

#[test]
fn the_verdict_is_the_one_that_is_given() {
    let (_, problem) = cases().swap_remove(0);
    let chains = draws(&problem, 2, 1200);
    for (ess, expected) in [(100, "Converged: "), (50_000, "Not converged: ")] {
        let settings = Settings { ess, ..Settings::default() };
        let verdict = verdict(&problem, &settings, &chains);
        let input = ReportInput { verdict: Some(&verdict), ..input(&problem, &chains) };
        let page = report(&input).unwrap();
        check(&page);
        assert!(page.contains(expected), "{ess}: {:?}", verdict.worst_ess());
    }
}

#[test]
fn hostile_names_stay_text() {
    let (_, problem) = cases().swap_remove(4);
    let chains = draws(&problem, 2, 25);
    let evil = |n: usize| vec!["\"><script>alert(1)</script>]]>&amp;\u{0}'<!--".to_owned(); n];
    let names = Names {
        states: evil(2),
        inputs: evil(2),
        outputs: evil(2),
        sequences: evil(2),
        time_label: evil(1).concat(),
        times: vec![vec![f64::NAN; 30], vec![1.0]],
        ..Names::default()
    };
    let page = report(&ReportInput {
        title: "</title><script>",
        names,
        warnings: evil(1),
        facts: vec![(evil(1).concat(), evil(1).concat())],
        configuration: Some("</pre></details><script>"),
        ..input(&problem, &chains)
    })
    .unwrap();
    check(&page);
    let page = without_script(&page);
    assert!(!page.contains("<script") && !page.contains("<!--"));
}

#[test]
fn long_records_stay_small() {
    let known =
        |a: f64| FunctionSpec::Linear { a: vec![Value::Known(a)], b: Vec::new(), offset: Value::Known(0.0) };
    let mut model = Model::observed(1, 0);
    model.states[0].transition = TransitionSpec::Parametric { function: known(0.9) };
    assert_eq!(model.dynamics, DynamicsSpec::Exact);
    let problem = problem(model, wave(100_000, 1, 0).into());
    let chains = draws(&problem, 4, 12);
    let page = report(&input(&problem, &chains)).unwrap();
    check(&page);
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn many_draws_and_parameters_stay_small() {
    let problem = problem(Model::observed(6, 3), wave(30, 6, 3).into());
    let chains = draws(&problem, 10, 400);
    let page = report(&input(&problem, &chains)).unwrap();
    check(&page);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(page.contains("more hyper-parameters"));
}

#[test]
fn draws_that_do_not_fit_are_refused() {
    let (_, problem) = cases().swap_remove(0);
    let good = draws(&problem, 2, 5);
    let refused = |chains: &[ChainDraws]| report(&input(&problem, chains)).unwrap_err().to_string();
    assert!(refused(&[]).contains("there are none"));
    let mut bad = good.clone();
    bad[1].theta[3].pop();
    assert!(refused(&bad).contains("chain 1, draw 3"));
    let mut bad = good.clone();
    bad[0].paths[2][0][1] = f64::NAN;
    assert!(refused(&bad).contains("chain 0, draw 2"));
    let mut bad = good.clone();
    bad[0].paths.pop();
    assert!(refused(&bad).contains("chain 0"));
    // Few draws, unequal chains and missing records of the sweeps are no error.
    let mut odd = good;
    odd[1] =
        ChainDraws { theta: odd[1].theta[..1].to_vec(), paths: odd[1].paths[..1].to_vec(), info: Vec::new() };
    check(&report(&input(&problem, &odd)).unwrap());
    odd[0] = ChainDraws::default();
    check(&report(&input(&problem, &odd)).unwrap());
}
