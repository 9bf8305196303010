// @ts-check
// Figures that can be explored: zoom, pan, values under the pointer, marks that can be hidden. Without this script, and on
// paper, the page is complete; nothing is loaded, and nothing is remembered.
"use strict";
(() => {
  const first = document.querySelector("figure svg.fig");
  if (!first) return;
  const SVG = String(first.namespaceURI);
  const LEAST = 0.0005;
  // Marks that need no entry in a legend.
  const PLAIN = new Map([
    ["da", "data"],
    ["md", "median"],
  ]);

  /** @typedef {{element: SVGElement, name: string, shapes: number[][][] | null}} Curve */

  /** Numbers of an attribute. @param {Element} element @param {string} name @returns {number[]} */
  const numbers = (element, name) => (element.getAttribute(name) || "").split(" ").filter(Boolean).map(Number);

  /** Polygons and lines of a path of relative moves and lines. @param {string} text @returns {number[][][]} */
  function shapes(text) {
    const words = text.match(/[a-z]|-?(?:\d*\.\d+|\d+)/gi) || [];
    /** @type {number[][][]} */
    const all = [];
    let [x, y, i] = [0, 0, 0];
    let move = false;
    while (i < words.length) {
      const word = words[i];
      if (word === "m" || word === "l") {
        move = word === "m";
        i += 1;
      } else if (word === "z") {
        const shape = all[all.length - 1];
        [x, y] = shape[0];
        shape.push([x, y]);
        i += 1;
      } else {
        [x, y] = [x + Number(word), y + Number(words[i + 1])];
        if (move) all.push([]);
        all[all.length - 1].push([x, y]);
        move = false;
        i += 2;
      }
    }
    return all;
  }

  /** A number with as many digits as a difference needs. @param {number} value @param {number} width */
  function short(value, width) {
    const digits = Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(width) || 1))));
    const size = Math.abs(value);
    return size !== 0 && (size >= 1e6 || size < 1e-4) ? value.toExponential(3) : String(Number(value.toFixed(digits)));
  }

  /** Seconds since 1970 as a date. @param {number} seconds @param {number} width */
  function date(seconds, width) {
    const text = new Date(1000 * seconds).toISOString();
    if (width > 40 * 86400) return text.slice(0, 10);
    return width > 3600 ? text.slice(0, 16).replace("T", " ") : text.slice(0, 19).replace("T", " ");
  }

  const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 20160, 43200, 129600, 525600];
  const STEPS = [1, 2, 5, 10, 15, 30, ...MINUTES.map((minutes) => 60 * minutes)];

  /** Steps of clocks between two numbers of seconds. @param {number} low @param {number} high @param {number} wanted */
  function clockTicks(low, high, wanted) {
    const step = STEPS.find((seconds) => (high - low) / seconds <= wanted);
    if (step === undefined || high - low < 3) return ticks(low, high, wanted);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    return found;
  }

  /** Round numbers between two. @param {number} low @param {number} high @param {number} wanted */
  function ticks(low, high, wanted) {
    const raw = (high - low) / wanted;
    const decade = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * decade).find((s) => s >= raw) || raw;
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high && found.length < 20; k += 1) found.push(k * step);
    return found;
  }

  /** An axis: pixels to values. */
  class Scale {
    /** @param {number[]} ends @param {boolean} log @param {number} size @param {boolean} flipped */
    constructor(ends, log, size, flipped) {
      this.low = log ? Math.log(ends[0]) : ends[0];
      this.high = log ? Math.log(ends[1]) : ends[1];
      this.log = log;
      this.size = size;
      this.flipped = flipped;
    }

    /** @param {number} pixel */
    value(pixel) {
      const part = this.flipped ? 1 - pixel / this.size : pixel / this.size;
      const inner = this.low + part * (this.high - this.low);
      return this.log ? Math.exp(inner) : inner;
    }

    /** @param {number} value */
    pixel(value) {
      const part = ((this.log ? Math.log(value) : value) - this.low) / (this.high - this.low);
      return this.size * (this.flipped ? 1 - part : part);
    }
  }

  /** Marks between two axes. */
  class Panel {
    /** @param {Figure} figure @param {SVGSVGElement} element */
    constructor(figure, element) {
      this.figure = figure;
      this.element = element;
      const size = (/** @type {string} */ name) => Number(element.getAttribute(name));
      this.x = size("x");
      this.y = size("y");
      this.w = size("width");
      this.h = size("height");
      const log = element.getAttribute("data-log") || "";
      this.across = new Scale(numbers(element, "data-x"), log.includes("x"), this.w, false);
      this.up = new Scale(numbers(element, "data-y"), log.includes("y"), this.h, true);
      this.seconds = numbers(element, "data-s");
      // Panels that show the same stretch of time move together.
      this.link = `${element.hasAttribute("data-time") ? "time" : figure.number} ${element.getAttribute("data-x")}`;
      this.view = [0, this.w, 0, this.h];
      this.axes = ["xa", "ya"].map((name) => /** @type {SVGGElement | null} */ (this.neighbour(name)));
      this.drawn = this.axes.map((axis) => (axis ? axis.innerHTML : ""));
      this.numbers = this.axes.map((axis) => axis !== null && axis.querySelector("text") !== null);
      element.setAttribute("preserveAspectRatio", "none");
      // Where nothing is drawn the pointer is seen, too.
      const back = document.createElementNS(SVG, "rect");
      for (const [name, value] of Object.entries({ width: this.w, height: this.h, fill: "transparent" })) {
        back.setAttribute(name, String(value));
      }
      element.prepend(back);
      /** @type {Curve[]} */
      this.curves = [...element.querySelectorAll("path[class]")].map((path) => ({
        element: /** @type {SVGElement} */ (path),
        name: figure.names.get(path.getAttribute("class") || "") || PLAIN.get(path.getAttribute("class") || "") || "",
        shapes: null,
      }));
    }

    /** The axis group before or after the panel. @param {string} name */
    neighbour(name) {
      /** @type {Element | null} */
      let next = name === "ya" ? this.element.previousElementSibling : this.element.nextElementSibling;
      while (next && next.getAttribute("class") !== name && next.tagName !== "svg") {
        next = name === "ya" ? next.previousElementSibling : next.nextElementSibling;
      }
      return next && next.getAttribute("class") === name ? next : null;
    }

    get zoomed() {
      const [x0, x1, y0, y1] = this.view;
      return x0 > 0 || y0 > 0 || x1 < this.w || y1 < this.h;
    }

    /** Shows a part of the panel. @param {number[]} view */
    show(view) {
      const fit = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ size) => {
        const width = Math.min(size, Math.max(LEAST * size, to - from));
        const start = Math.min(size - width, Math.max(0, from));
        return [start, start + width];
      };
      this.view = [...fit(view[0], view[1], this.w), ...fit(view[2], view[3], this.h)];
      const [x0, x1, y0, y1] = this.view;
      this.element.setAttribute("viewBox", `${x0} ${y0} ${x1 - x0} ${y1 - y0}`);
      this.axes.forEach((axis, i) => {
        if (axis) axis.innerHTML = this.zoomed ? this.axis(i) : this.drawn[i];
      });
    }

    /** Ticks and numbers of what is shown. @param {number} i */
    axis(i) {
      const [from, to] = i === 0 ? this.view.slice(0, 2) : [this.view[3], this.view[2]];
      const scale = i === 0 ? this.across : this.up;
      const dates = i === 0 && this.seconds.length === 2;
      const times = new Scale(this.seconds, false, this.w, false);
      const [low, high] = dates ? [times.value(from), times.value(to)] : [scale.value(from), scale.value(to)];
      const size = i === 0 ? this.w : this.h;
      let out = "";
      for (const tick of dates ? clockTicks(low, high, 6) : ticks(low, high, size / (i === 0 ? 90 : 40))) {
        const inner = dates ? times.pixel(tick) : scale.pixel(tick);
        const at = ((i === 0 ? inner - from : inner - to) / Math.abs(to - from)) * size;
        const text = dates ? date(tick, high - low) : short(tick, high - low);
        if (i === 0) {
          const [x, y] = [this.x + at, this.y + this.h];
          out += `<line class="ax" x1="${x}" x2="${x}" y1="${y}" y2="${y + 4}"/>`;
          if (this.numbers[0]) out += `<text text-anchor="middle" x="${x}" y="${y + 16}">${text}</text>`;
        } else {
          const y = this.y + at;
          out += `<line class="gr" x1="${this.x}" x2="${this.x + this.w}" y1="${y}" y2="${y}"/>`;
          if (this.numbers[1]) out += `<text text-anchor="end" x="${this.x - 6}" y="${y + 3.8}">${text}</text>`;
        }
      }
      return out;
    }

    /** Where the pointer is, in pixels of the panel as it was drawn. @param {MouseEvent} event */
    at(event) {
      const own = this.figure.scale();
      const origin = this.figure.svg.getBoundingClientRect();
      // The box of a nested figure is that of its marks, not of its frame.
      const [left, top] = [origin.left + this.x * own, origin.top + this.y * own];
      const part = [(event.clientX - left) / (this.w * own), (event.clientY - top) / (this.h * own)];
      const [x0, x1, y0, y1] = this.view;
      return [x0 + part[0] * (x1 - x0), y0 + part[1] * (y1 - y0)];
    }

    /** Names and values of everything that is shown near a place. @param {number} x */
    values(x) {
      const near = (6 * (this.view[1] - this.view[0])) / this.w;
      const height = this.up.value(this.view[2]) - this.up.value(this.view[3]);
      const found = [];
      for (const curve of this.curves) {
        if (!curve.name || curve.element.style.display === "none") continue;
        curve.shapes = curve.shapes || shapes(curve.element.getAttribute("d") || "");
        const heights = [];
        let [distance, nearest] = [near, Infinity];
        for (const shape of curve.shapes) {
          shape.forEach(([px, py], i) => {
            if (Math.abs(px - x) <= distance) [distance, nearest] = [Math.abs(px - x), py];
            const [qx, qy] = shape[i + 1] || [px, py];
            if (qx !== px && (px - x) * (qx - x) <= 0) heights.push(py + ((qy - py) * (x - px)) / (qx - px));
          });
        }
        if (heights.length === 0 && Number.isFinite(nearest)) heights.push(nearest);
        if (heights.length === 0) continue;
        const ends = [Math.max(...heights), Math.min(...heights)].map((y) => short(this.up.value(y), height));
        found.push([curve.name, ends[0] === ends[1] ? ends[0] : `${ends[0]} .. ${ends[1]}`]);
      }
      return found;
    }

    /** The value below the pointer. @param {number} x */
    place(x) {
      if (this.seconds.length === 2) return date(new Scale(this.seconds, false, this.w, false).value(x), 0);
      return short(this.across.value(x), this.across.value(this.view[1]) - this.across.value(this.view[0]));
    }
  }

  /** A figure with its panels, tools and legend. */
  class Figure {
    /** @param {SVGSVGElement} svg @param {number} number */
    constructor(svg, number) {
      this.svg = svg;
      this.number = number;
      /** @type {Map<string, string>} */
      this.names = new Map();
      const keys = /** @type {SVGGElement[]} */ ([...svg.querySelectorAll("g.key")]);
      keys.forEach((key) => this.names.set(key.getAttribute("data-for") || "", (key.textContent || "").trim()));
      // Figures without a legend follow the one before them in their section.
      const before = figures.filter((other) => other.svg.closest("section") === svg.closest("section") && other.leader === null);
      /** @type {Figure | null} */
      this.leader = (keys.length === 0 && before[before.length - 1]) || null;
      if (this.leader) this.names = this.leader.names;
      this.panels = [...svg.querySelectorAll("svg[data-x]")].map(
        (element) => new Panel(this, /** @type {SVGSVGElement} */ (element)),
      );
      keys.forEach((key) => this.legend(key));
      svg.setAttribute("tabindex", "0");
      svg.addEventListener("keydown", (event) => this.key(event));
      this.panels.forEach((panel) => this.listen(panel));
      this.tools();
    }

    /** Pixels of the screen for one of the figure. */
    scale() {
      return this.svg.getBoundingClientRect().width / Number(this.svg.getAttribute("width"));
    }

    /** An entry of the legend hides its marks. @param {SVGGElement} key */
    legend(key) {
      const name = key.getAttribute("data-for") || "";
      const of = (/** @type {Figure} */ figure) =>
        figure.panels.flatMap((panel) => panel.curves).filter((c) => c.element.getAttribute("class") === name);
      if (of(this).length === 0) return;
      key.setAttribute("role", "button");
      key.setAttribute("tabindex", "0");
      key.setAttribute("aria-pressed", "true");
      const toggle = () => {
        const shown = key.getAttribute("aria-pressed") !== "true";
        key.setAttribute("aria-pressed", String(shown));
        const followers = figures.filter((figure) => figure.leader === this);
        [this, ...followers].flatMap(of).forEach((curve) => {
          curve.element.style.display = shown ? "" : "none";
        });
      };
      key.addEventListener("click", toggle);
      key.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        toggle();
      });
    }

    /** Buttons above the figure. */
    tools() {
      const bar = document.createElement("div");
      bar.className = "tools";
      /** @type {[string, string, () => void][]} */
      const buttons = [
        ["+", "Zoom in", () => this.zoom(0.5)],
        ["−", "Zoom out", () => this.zoom(2)],
        ["Reset", "Show everything", () => this.reset()],
      ];
      for (const [text, title, act] of buttons) {
        const button = document.createElement("button");
        [button.type, button.textContent, button.title] = ["button", text, title];
        button.addEventListener("click", act);
        bar.append(button);
      }
      this.svg.before(bar);
    }

    /** Shows a stretch in this panel and in all that are linked to it. @param {Panel} panel @param {number[]} view */
    go(panel, view) {
      panel.show(view);
      const [x0, x1] = panel.view.map((x) => x / panel.w);
      for (const figure of figures) {
        for (const other of figure.panels) {
          if (other !== panel && other.link === panel.link) {
            other.show([x0 * other.w, x1 * other.w, other.view[2], other.view[3]]);
          }
        }
      }
    }

    /** Zooms all panels. @param {number} factor */
    zoom(factor) {
      const seen = new Set();
      for (const panel of this.panels) {
        if (seen.has(panel.link)) continue;
        seen.add(panel.link);
        const [x0, x1, y0, y1] = panel.view;
        const half = (factor * (x1 - x0)) / 2;
        this.go(panel, [(x0 + x1) / 2 - half, (x0 + x1) / 2 + half, y0, y1]);
      }
    }

    /** Moves all panels by a part of what they show. @param {number} part */
    move(part) {
      const seen = new Set();
      for (const panel of this.panels) {
        if (seen.has(panel.link)) continue;
        seen.add(panel.link);
        const [x0, x1, y0, y1] = panel.view;
        const by = part * (x1 - x0);
        this.go(panel, [x0 + by, x1 + by, y0, y1]);
      }
    }

    reset() {
      this.panels.forEach((panel) => this.go(panel, [0, panel.w, 0, panel.h]));
    }

    /** @param {KeyboardEvent} event */
    key(event) {
      /** @type {Record<string, () => void>} */
      const acts = {
        "+": () => this.zoom(0.5),
        "-": () => this.zoom(2),
        0: () => this.reset(),
        ArrowLeft: () => this.move(-0.25),
        ArrowRight: () => this.move(0.25),
      };
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    }

    /** @param {Panel} panel */
    listen(panel) {
      const { element } = panel;
      element.addEventListener("pointermove", (event) => hover(panel, event));
      element.addEventListener("pointerleave", hide);
      element.addEventListener("dblclick", () => this.reset());
      element.addEventListener(
        "wheel",
        (event) => {
          // The page scrolls, unless a key is held or the figure was chosen.
          if (!event.ctrlKey && !event.shiftKey && document.activeElement !== this.svg) return;
          event.preventDefault();
          const [x, y] = panel.at(event);
          const factor = event.deltaY + event.deltaX > 0 ? 1.25 : 0.8;
          const [x0, x1, y0, y1] = panel.view;
          const vertical = event.shiftKey ? factor : 1;
          this.go(panel, [
            x - (x - x0) * factor,
            x + (x1 - x) * factor,
            y - (y - y0) * vertical,
            y + (y1 - y) * vertical,
          ]);
        },
        { passive: false },
      );
      element.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        const [start, view, first] = [panel.at(event), [...panel.view], event];
        const pan = panel.zoomed && !event.shiftKey;
        const unit = (view[1] - view[0]) / (panel.w * this.scale());
        const rise = (view[3] - view[2]) / (panel.h * this.scale());
        element.setPointerCapture(event.pointerId);
        const box = document.createElementNS(SVG, "rect");
        box.setAttribute("class", "pick");
        if (!pan) element.append(box);
        const move = (/** @type {PointerEvent} */ now) => {
          if (pan) {
            const [by, down] = [(now.clientX - first.clientX) * unit, (now.clientY - first.clientY) * rise];
            this.go(panel, [view[0] - by, view[1] - by, view[2] - down, view[3] - down]);
            return;
          }
          const ends = [start[0], panel.at(now)[0]].sort((a, b) => a - b);
          const size = { x: ends[0], width: ends[1] - ends[0], y: view[2], height: view[3] - view[2] };
          for (const [name, value] of Object.entries(size)) box.setAttribute(name, String(value));
        };
        const done = (/** @type {PointerEvent} */ now) => {
          element.removeEventListener("pointermove", move);
          box.remove();
          const ends = [start[0], panel.at(now)[0]].sort((a, b) => a - b);
          if (!pan && (ends[1] - ends[0]) / unit > 5) this.go(panel, [ends[0], ends[1], view[2], view[3]]);
        };
        element.addEventListener("pointermove", move);
        element.addEventListener("pointerup", done, { once: true });
      });
    }
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  const cross = document.createElementNS(SVG, "line");
  cross.setAttribute("class", "cross");

  /** Values under the pointer. @param {Panel} panel @param {PointerEvent} event */
  function hover(panel, event) {
    const [x] = panel.at(event);
    const values = panel.values(x);
    for (const [name, value] of Object.entries({ x1: x, x2: x, y1: panel.view[2], y2: panel.view[3] })) {
      cross.setAttribute(name, String(value));
    }
    panel.element.append(cross);
    tip.replaceChildren(
      ...[["", panel.place(x)], ...values].map(([name, value]) => {
        const row = document.createElement("div");
        row.textContent = name ? `${name}: ${value}` : value;
        return row;
      }),
    );
    tip.style.display = "block";
    const left = event.clientX + 14;
    tip.style.left = `${left + tip.offsetWidth > innerWidth ? event.clientX - tip.offsetWidth - 14 : left}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 4)}px`;
  }

  function hide() {
    tip.style.display = "none";
    cross.remove();
  }

  /** A slider that chooses among figures of the same axes. @param {Element} figure */
  function slider(figure) {
    const slides = [...figure.querySelectorAll(".slide")];
    const bar = document.createElement("label");
    const input = document.createElement("input");
    const value = document.createElement("output");
    bar.className = "slider";
    [input.type, input.min, input.max] = ["range", "0", String(slides.length - 1)];
    const show = (/** @type {number} */ chosen) => {
      slides.forEach((slide, i) => slide.classList.toggle("shown", i === chosen));
      value.textContent = slides[chosen].getAttribute("data-label") || "";
    };
    const start = slides.findIndex((slide) => slide.classList.contains("shown"));
    input.value = String(start);
    input.addEventListener("input", () => show(Number(input.value)));
    bar.append(figure.getAttribute("data-name") || "", input, value);
    show(start);
    figure.prepend(bar);
  }

  /** @type {Figure[]} */
  const figures = [];
  document.body.append(tip);
  document.documentElement.classList.add("live");
  document.querySelectorAll("figure.slides").forEach(slider);
  document.querySelectorAll("figure svg.fig").forEach((svg) => {
    if (svg.querySelector("svg[data-x]")) figures.push(new Figure(/** @type {SVGSVGElement} */ (svg), figures.length));
  });
})();
