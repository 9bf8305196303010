//! The page in a browser: zoom, pan, values under the pointer, marks that are hidden, and the axes that follow.
//!
//! Where no browser is installed the test says so and passes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpssm_report::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale};
use gpssm_report::checks::{CheckPage, ResidualChecks, check_page};
use gpssm_report::content::{Block, Contents, Section};
use gpssm_report::page::page;

/// Tenths of a second that a browser may take.
const PATIENCE: usize = 600;

/// A headless Chromium on the path.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// The page as it stands after its scripts, or a message if the browser did not start.
fn run(browser: &Path, folder: &Path, page: &str) -> Result<String, String> {
    let file = folder.join("page.html");
    std::fs::write(&file, page).map_err(|error| error.to_string())?;
    let said = |name: &str| std::fs::File::create(folder.join(name)).map_err(|error| error.to_string());
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=900,1200",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdout(said("dom.html")?)
        .stderr(said("log.txt")?)
        .spawn()
        .map_err(|error| error.to_string())?;
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    for _ in 0..PATIENCE {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return read("dom.html"),
            Some(_) => return Err(read("log.txt")?),
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    }
    // A browser that hangs is no fault of the page.
    let _ = child.kill();
    let _ = child.wait();
    Err("it does not come to an end".into())
}

/// What the reader saw on a page; none, with a message, where no browser starts.
fn seen(name: &str, page: &str, reader: &str) -> Option<String> {
    let Some(browser) = browser() else {
        eprintln!("no browser on the path: the page was not driven");
        return None;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let page = page.replace("</body>", &format!("<script>{{{reader}}}</script></body>"));
    let found = match run(&browser, &folder, &page) {
        Ok(found) => found,
        Err(message) => {
            eprintln!("the browser does not start here, so the page was not driven: {message}");
            return None;
        }
    };
    let (_, rest) = found.split_once("data-seen=\"").expect("the reader came to the end");
    rest.split_once('"').map(|(seen, _)| seen.to_owned())
}

/// One thing that was seen.
fn value(seen: &str, name: &str) -> String {
    let found = seen.split('|').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    found.unwrap_or_else(|| panic!("no {name} in {seen}")).to_owned()
}

/// What a reader does, and what is found: pairs `name=value` in the attribute `data-seen` of the body.
const READER: &str = r##"
const seen = [];
const see = (name, value) => seen.push(`${name}=${value}`);
const figure = document.querySelector("figure");
const svg = figure.querySelector("svg.fig");
const panels = [...svg.querySelectorAll("svg[data-x]")];
const [over] = panels;
const box = svg.getBoundingClientRect();
const unit = box.width / Number(svg.getAttribute("width"));
const at = (part) => ({
  clientX: box.left + unit * (Number(over.getAttribute("x")) + part * Number(over.getAttribute("width"))),
  clientY: box.top + unit * (Number(over.getAttribute("y")) + 0.5 * Number(over.getAttribute("height"))),
  bubbles: true, cancelable: true, button: 0, pointerId: 1, pointerType: "mouse",
});
const view = () => (over.getAttribute("viewBox") || "all").split(" ").map((x) => Math.round(Number(x))).join(" ");
const ticks = () => [...over.nextElementSibling.parentElement.querySelectorAll("g.xa")][0].textContent;
over.setPointerCapture = () => {};
see("panels", panels.length);
see("tools", figure.querySelectorAll(".tools button").length);
see("before", ticks());
over.dispatchEvent(new PointerEvent("pointermove", at(0.5)));
see("tip", document.querySelector(".tip").textContent);
see("shown", getComputedStyle(document.querySelector(".tip")).display);
over.dispatchEvent(new PointerEvent("pointerdown", at(0.25)));
over.dispatchEvent(new PointerEvent("pointermove", at(0.75)));
over.dispatchEvent(new PointerEvent("pointerup", at(0.75)));
see("picked", view());
see("after", ticks());
over.dispatchEvent(new PointerEvent("pointerdown", at(0.5)));
over.dispatchEvent(new PointerEvent("pointermove", at(0.7)));
over.dispatchEvent(new PointerEvent("pointerup", at(0.7)));
see("panned", view());
over.dispatchEvent(new WheelEvent("wheel", { ...at(0.5), deltaY: -100, ctrlKey: true }));
see("wheeled", view());
over.dispatchEvent(new WheelEvent("wheel", { ...at(0.5), deltaY: -100 }));
see("scrolled", view());
over.dispatchEvent(new MouseEvent("dblclick", at(0.5)));
see("reset", view());
see("restored", ticks());
const key = svg.querySelector("g.key[role=button]");
const marks = [...svg.querySelectorAll(`svg path.${key.dataset.for}`)].filter((path) => !path.closest("g.key"));
const hidden = () => marks.filter((path) => getComputedStyle(path).display === "none").length;
key.dispatchEvent(new MouseEvent("click", { bubbles: true }));
see("hidden", hidden() === marks.length && marks.length > 0);
see("pressed", key.getAttribute("aria-pressed"));
key.dispatchEvent(new MouseEvent("click", { bubbles: true }));
see("again", hidden());
const drawn = [...over.querySelectorAll("path.da")].map((path) => path.getBoundingClientRect());
see("marks", drawn.some((box) => box.width > 100 && box.height > 20));
document.body.dataset.seen = seen.join("|");
"##;

/// Residuals over two hours of dates; one falls outside.
fn checks() -> String {
    let n = 240;
    let output = ResidualChecks {
        name: "level".into(),
        t: (0..n).map(|i| 30.0 * f64::from(i)).collect(),
        residuals: (0..n).map(|i| (f64::from(i * i) * 0.37).sin() * 2.0).collect(),
        pit: (0..n).map(|i| (f64::from(i) + 0.5) / f64::from(n)).collect(),
        autocorrelation: vec![0.3, -0.1, 0.05],
        ..ResidualChecks::default()
    };
    let ticks =
        gpssm_report::chart::TimeTicks::new(|_, _, _| None).with_seconds(|time| 1_709_625_600.0 + time);
    check_page(&CheckPage {
        title: "Checks",
        outputs: vec![output],
        time_label: "time".into(),
        time_ticks: ticks,
        ..CheckPage::default()
    })
}

#[test]
fn figures_can_be_explored() {
    let Some(seen) = seen("browser", &checks(), READER) else { return };
    let of = |name: &str| value(&seen, name);
    assert_eq!((of("panels"), of("tools"), of("shown")), ("3".into(), "3".into(), "block".into()), "{seen}");
    // The middle of the record, an hour after eight o'clock.
    assert!(of("tip").starts_with("2024-03-05 08:59"), "{seen}");
    let view = |name: &str| -> Vec<f64> { of(name).split(' ').map(|x| x.parse().unwrap()).collect() };
    let (picked, panned, wheeled) = (view("picked"), view("panned"), view("wheeled"));
    let whole = view("reset");
    assert!(
        (picked[2] / whole[2] - 0.5).abs() < 0.01 && (picked[0] / whole[2] - 0.25).abs() < 0.01,
        "{seen}"
    );
    assert!(panned[2] == picked[2] && panned[0] < picked[0], "{seen}");
    assert!((wheeled[2] / panned[2] - 0.8).abs() < 0.01, "{seen}");
    assert_eq!(view("scrolled"), wheeled, "the page scrolls");
    assert!(
        of("before") != of("after") && of("after").contains("08:30") && of("restored") == of("before"),
        "{seen}"
    );
    assert_eq!(
        (of("hidden"), of("pressed"), of("again")),
        ("true".into(), "false".into(), "0".into()),
        "{seen}"
    );
    assert_eq!(of("marks"), "true", "{seen}");
}

/// A curve that rises to a height, one colour for each of two lines.
fn curve(height: f64, legend: bool) -> Figure {
    let x: Vec<f64> = (0..50).map(f64::from).collect();
    let line = |of: f64, class| Mark::Line { x: x.clone(), y: x.iter().map(|x| of * x * x).collect(), class };
    let band = Mark::Band {
        x: x.clone(),
        low: x.iter().map(|x| 0.3 * height * x * x).collect(),
        high: x.iter().map(|x| 0.6 * height * x * x).collect(),
        class: Class::Inner,
    };
    let marks = vec![band, line(height, Class::Series(0)), line(0.5 * height, Class::Series(1))];
    let panel = Panel::new("f", Axis::new("x", Scale::linear(0.0, 49.0)), "", marks)
        .with_y(Scale::linear(0.0, 7500.0));
    let keys = [0, 1].map(|c| (Key::Line(Class::Series(c)), format!("chain {}", c + 1))).to_vec();
    Figure::new("a curve", if legend { keys } else { Vec::new() }, vec![Row::new(vec![panel], 200.0)])
}

/// Slides of three heights; a figure with a legend, and folded ones that follow it.
fn slides() -> String {
    let slides = Block::Slides {
        name: "pump".into(),
        labels: ["low", "middle", "high"].map(String::from).to_vec(),
        svgs: [1.0, 2.0, 3.0].map(|height| curve(height, false).svg()).to_vec(),
        first: 1,
        caption: "Slides.".into(),
    };
    let figure = |legend| Block::Figure { svg: curve(1.0, legend).svg(), caption: String::new() };
    let folded = Block::Folded { summary: "More".into(), blocks: vec![figure(false), figure(false)] };
    page(&Contents {
        title: "A run".into(),
        summary: Vec::new(),
        lights: None,
        warnings: Vec::new(),
        checks: Vec::new(),
        facts: Vec::new(),
        sections: vec![
            Section { id: "f", title: "f".into(), blocks: vec![slides] },
            Section { id: "parameters", title: "Parameters".into(), blocks: vec![figure(true), folded] },
        ],
    })
}

/// Moves the slider, hides a chain everywhere, unfolds, and counts the pixels of a band on the screen.
const SLIDER: &str = r##"
const seen = [];
const see = (name, value) => seen.push(`${name}=${value}`);
const shown = () => [...document.querySelectorAll(".slide")].map((slide) => (slide.offsetHeight > 0 ? 1 : 0)).join("");
const input = document.querySelector(".slider input");
see("before", shown());
see("label", document.querySelector(".slider output").textContent);
input.value = "2";
input.dispatchEvent(new Event("input"));
see("after", shown());
see("text", document.querySelector(".slider output").textContent);
const lines = () => [...document.querySelectorAll("#parameters svg[data-x] path.c0")];
document.querySelector("#parameters g.key[data-for=c0]").dispatchEvent(new MouseEvent("click", { bubbles: true }));
see("hidden", lines().filter((path) => path.style.display === "none").length);
see("others", [...document.querySelectorAll("#f path.c0")].filter((path) => path.style.display === "none").length);
const folded = [...document.querySelectorAll("details.more svg.fig")];
see("folded", folded.filter((svg) => svg.checkVisibility()).length);
document.querySelector("details.more").open = true;
see("unfolded", folded.filter((svg) => svg.checkVisibility()).length);
// The figure as it is on the screen: its marks are there, in their colours.
const svg = document.querySelector(".slide.shown svg.fig").cloneNode(true);
svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
style.textContent = [...document.querySelectorAll("style")].map((sheet) => sheet.textContent).join("");
svg.prepend(style);
const image = new Image();
image.onload = () => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [720, 200];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, 720, 200);
  let [blue, orange] = [0, 0];
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b, a] = data.slice(i, i + 4);
    if (a > 40 && b > r + 40 && b > g) blue += 1;
    if (a > 40 && r > g + 40 && g > b) orange += 1;
  }
  see("blue", blue);
  see("orange", orange);
  document.body.dataset.seen = seen.join("|");
};
image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
"##;

#[test]
fn a_slider_chooses_and_legends_reach_folded_figures() {
    let Some(seen) = seen("slider", &slides(), SLIDER) else { return };
    let of = |name: &str| value(&seen, name);
    assert_eq!((of("before"), of("label")), ("010".into(), "middle".into()), "{seen}");
    assert_eq!((of("after"), of("text")), ("001".into(), "high".into()), "{seen}");
    // The chain is hidden in its own figure and in those that follow, not in other sections.
    assert_eq!((of("hidden"), of("others")), ("3".into(), "0".into()), "{seen}");
    assert_eq!((of("folded"), of("unfolded")), ("0".into(), "2".into()), "{seen}");
    // A band of a tenth of the panel, and a line.
    let pixels = |name: &str| of(name).parse::<usize>().unwrap();
    assert!(pixels("blue") > 3_000 && pixels("orange") > 100, "{seen}");
}
