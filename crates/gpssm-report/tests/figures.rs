//! Single figures as files: well-formed, bounded, with nothing from outside.

mod xml;

use gpssm_report::chart::TimeTicks;
use gpssm_report::figures::{
    Coverage, Curve, Intervals, OneStepSeries, Series, SurfaceData, figure_calibration, figure_free_run,
    figure_one_step, figure_states, figure_surface, figure_transition,
};

fn check(svg: &str) {
    let document = xml::parse(svg);
    assert_eq!(document.elements[0].name, "svg");
    assert_eq!(svg.matches("http").count(), 1);
    assert!(svg.contains("xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(!svg.contains("NaN") && !svg.contains("inf ") && !svg.contains("url("));
    for (name, value) in document.elements.iter().flat_map(|element| &element.attributes) {
        if name == "d" {
            assert!(value.chars().all(|c| "mlz .-0123456789".contains(c)), "{value}");
        }
    }
}

fn bands(n: usize) -> Intervals {
    let line = |shift: f64| (0..n).map(|t| (0.1 * t as f64).sin() + shift).collect();
    Intervals {
        low: line(-2.0),
        inner_low: line(-1.0),
        middle: line(0.0),
        inner_high: line(1.0),
        high: line(2.0),
    }
}

fn series(n: usize) -> Series {
    let t: Vec<f64> = (0..n).map(|t| t as f64).collect();
    let mut data: Vec<f64> = t.iter().map(|t| (0.1 * t).cos()).collect();
    (data[0], data[n / 2]) = (f64::NAN, f64::INFINITY);
    let samples = vec![data.clone(), vec![f64::NAN; n]];
    Series {
        title: "a & b".into(),
        truth: data.clone(),
        t,
        data,
        bands: Some(bands(n)),
        samples,
        alternative: Vec::new(),
    }
}

#[test]
fn series_of_any_length_and_size() {
    for n in [2, 50, 100_000] {
        let svg = figure_states("states <1>", "t / s", &[series(n), series(n)]);
        check(&svg);
        assert!(svg.len() < 300_000, "{}", svg.len());
        check(&figure_free_run("", "", &TimeTicks::default(), &[series(n)]));
    }
    for scale in [1e-300, 1e-12, 1e12, 1e300, f64::MAX] {
        let values = [-1.0, 0.5, 1.0].map(|v| v * scale).to_vec();
        let one = Series { t: vec![0.0, 1.0, 2.0], data: values.clone(), truth: values, ..Series::default() };
        check(&figure_states("extreme", "t", &[one]));
    }
    check(&figure_states("nothing", "t", &[]));
    check(&figure_states("empty", "t", &[Series::default()]));
}

#[test]
fn other_figures() {
    let x: Vec<f64> = (0..20).map(f64::from).collect();
    let curve = Curve {
        title: "f".into(),
        x_label: "x".into(),
        y_label: "next x".into(),
        x: x.clone(),
        bands: bands(20),
        mean_function: x.clone(),
        truth: x.clone(),
        points: vec![(1.0, 2.0), (f64::NAN, 1.0)],
        rug: x.clone(),
        known: Some((2.0, 15.0)),
    };
    for n in 1..6 {
        check(&figure_transition("f", &vec![curve.clone(); n]));
    }
    let one =
        OneStepSeries { title: "x".into(), t: x.clone(), truth: x.clone(), mean: x.clone(), sd: x.clone() };
    check(&figure_one_step("one step", "t", &[one]));
    let grid: Vec<f64> = (0..400).map(|i| f64::from(i % 20) * f64::from(i / 20)).collect();
    let surface = SurfaceData {
        labels: ["x".into(), "u".into(), "<f>".into()],
        x: x.clone(),
        y: x.clone(),
        truth: grid.clone(),
        truth_name: "truth".into(),
        mean_function: grid,
        points: vec![[1.0, 2.0, 3.0], [f64::NAN, 0.0, 0.0]],
    };
    check(&figure_surface("surface", &surface));
    let levels: Vec<f64> = (0..=10).map(|i| f64::from(i) / 10.0).collect();
    let methods = vec![("a<b".to_owned(), levels.clone())];
    check(&figure_calibration("calibration", &Coverage { levels, methods, n: 100 }));
}
