//! The page in a browser: zoom, pan, values under the pointer, marks that are hidden, and the axes that follow.
//!
//! Where no browser is installed the test says so and passes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpssm_report::checks::{CheckPage, ResidualChecks, check_page};

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
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=900,1200", "--dump-dom"])
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
fn page() -> String {
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
    let Some(browser) = browser() else {
        eprintln!("no browser on the path: the page was not driven");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let page = page().replace("</body>", &format!("<script>{{{READER}}}</script></body>"));
    let found = match run(&browser, &folder, &page) {
        Ok(found) => found,
        Err(message) => {
            eprintln!("the browser does not start here, so the page was not driven: {message}");
            return;
        }
    };
    let (_, rest) = found.split_once("data-seen=\"").expect("the reader came to the end");
    let (seen, _) = rest.split_once('"').unwrap();
    let of = |name: &str| {
        let found = seen.split('|').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        found.unwrap_or_else(|| panic!("no {name} in {seen}")).to_owned()
    };
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
