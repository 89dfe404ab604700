// Small SVG charts: lines, bars with intervals, and points with boxes of confidence.
//
// Each is a figure with a title, a legend beside the drawing rather than on it, one stop for the tab key with arrow keys
// from value to value, a line that reads the value out, and the same numbers as a table.

import { el, fill, fresh, svg } from "./dom.js";
import { number } from "./format.js";
import { extent, labeller, linear, ticks, timeLabel, timeTicks } from "./scales.js";

const TEXT = 12; // pixels, as in the style sheet
const WIDE = 6.9; // of a character, on average and at most

/** What all charts share. A kind of chart draws into `this.drawing`, and says what its values are and how they read. */
class Chart {
  constructor(place, { title, note = "", height = 260, empty = "Nothing to show yet." }) {
    const [name, readout] = [fresh("chart"), fresh("readout")];
    this.height = height;
    this.empty = empty;
    this.at = -1;
    this.legend = el("ul", { class: "legend", "aria-label": "Legend" });
    this.drawing = svg("svg", {
      class: "drawing",
      role: "application",
      "aria-roledescription": "chart",
      "aria-labelledby": name,
      "aria-describedby": readout,
      tabindex: "0",
    });
    this.frame = el("div", { class: "frame" }, this.drawing);
    this.hint = "Point at it, or use the arrow keys, to read values.";
    this.readout = el("p", { class: "readout soft", id: readout, "aria-live": "polite" }, this.hint);
    this.rows = el("div", { class: "twin", tabindex: "0", role: "region", "aria-label": `${title}, as a table` });
    this.twin = el("details", {}, el("summary", {}, "As a table"), this.rows);
    this.twin.addEventListener("toggle", () => this.tabulate());
    this.figure = el(
      "figure",
      { class: "chart" },
      el("figcaption", { id: name }, el("span", { class: "caption" }, title), note && el("span", { class: "soft" }, note)),
      this.legend,
      this.frame,
      this.readout,
      this.twin,
    );
    place.append(this.figure);
    this.drawing.addEventListener("keydown", (event) => this.press(event));
    this.drawing.addEventListener("pointermove", (event) => this.point(event));
    this.drawing.addEventListener("pointerdown", (event) => this.point(event));
    this.drawing.addEventListener("pointerleave", () => this.read(-1));
    this.drawing.addEventListener("blur", () => this.read(-1));
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  /** Shows other data. */
  update(data) {
    this.data = data;
    this.draw();
    this.tabulate();
  }

  draw() {
    const width = Math.floor(this.frame.clientWidth);
    if (width < 40) return;
    this.width = width;
    fill(this.drawing);
    if (!this.data || this.isEmpty()) {
      this.size(this.data ? 72 : this.height);
      this.at = -1;
      const text = cut(this.data ? this.empty : "Reading…", width);
      this.drawing.append(svg("text", { x: width / 2, y: 40, class: "tick", "text-anchor": "middle" }, text));
      this.values = [];
    } else {
      this.size(this.height);
      this.values = this.render(width);
    }
    if (this.at >= this.values.length) this.at = -1;
    if (this.at >= 0) this.mark(this.at);
  }

  size(height) {
    const { drawing, width } = this;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", height);
  }

  tabulate() {
    if (!this.twin.open || !this.data) return;
    const { head, body } = this.table();
    fill(
      this.rows,
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, head.map((text, place) => el("th", { scope: "col", class: place ? "number" : null }, text)))),
        el("tbody", {}, body.map((row) => el("tr", {}, row.map((cell, place) => cellOf(cell, place))))),
      ),
    );
  }

  press(event) {
    const last = (this.values?.length ?? 0) - 1;
    if (last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    let next;
    if (event.key in steps) next = this.at < 0 ? (steps[event.key] > 0 ? 0 : last) : this.at + steps[event.key];
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    else if (event.key === "Escape") next = -1;
    else if (event.key === "Enter" && this.at >= 0) {
      this.open(this.at);
      return;
    } else return;
    event.preventDefault();
    this.read(Math.min(next, last));
  }

  point(event) {
    if (!this.values?.length) return;
    const box = this.drawing.getBoundingClientRect();
    this.read(this.nearest(event.clientX - box.left, event.clientY - box.top));
  }

  read(place) {
    if (place === this.at) return;
    this.at = place;
    this.cursor?.remove();
    this.cursor = null;
    if (place < 0) fill(this.readout, this.hint);
    else {
      this.mark(place);
      fill(this.readout, this.words(place));
    }
    this.readout.classList.toggle("soft", place < 0);
  }

  mark(place) {
    this.cursor?.remove();
    this.cursor = svg("g", { class: "cursor" }, this.highlight(place));
    this.drawing.append(this.cursor);
  }

  open() {}

  nearest(x, y) {
    let best = -1;
    let least = Infinity;
    this.values.forEach((value, place) => {
      const distance = this.away(value, x, y);
      if (distance < least) [best, least] = [place, distance];
    });
    return best;
  }

  /** Draws axes, and returns the scales. */
  axes(width, x, y) {
    const { height } = this;
    const top = y.label ? 26 : 12;
    const bottom = height - (x.label ? 44 : 26);
    const steps = ticks(y.domain, Math.max(2, Math.round((bottom - top) / 48)));
    const yText = y.format ?? labeller(steps);
    const left = 10 + WIDE * Math.max(...steps.map((value) => yText(value).length));
    const right = width - 12;
    const across = linear(x.domain, [left, right]);
    const down = linear(y.domain, [bottom, top]);
    const axes = svg("g", { class: "axes", "aria-hidden": "true" });
    for (const value of steps) {
      const at = Math.round(down(value)) + 0.5;
      axes.append(
        svg("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }),
        svg("text", { class: "tick", x: left - 6, y: at + 4, "text-anchor": "end" }, yText(value)),
      );
    }
    const room = x.time ? 84 : 64;
    const places = (x.time ? timeTicks : ticks)(x.domain, Math.max(2, Math.floor((right - left) / room)));
    const xText = x.time ? (value) => timeLabel(value, x.domain) : (x.format ?? labeller(places));
    for (const value of places) {
      const at = Math.round(across(value)) + 0.5;
      const text = xText(value);
      const half = (WIDE * text.length) / 2;
      const middle = Math.min(Math.max(at, half), width - half);
      axes.append(
        svg("line", { class: "grid faint", x1: at, x2: at, y1: top, y2: bottom }),
        svg("text", { class: "tick", x: middle, y: bottom + 17, "text-anchor": "middle" }, text),
      );
    }
    axes.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom + 0.5, y2: bottom + 0.5 }));
    if (y.label) axes.append(svg("text", { class: "label", x: 0, y: TEXT }, cut(y.label, width)));
    if (x.label) {
      axes.append(svg("text", { class: "label", x: right, y: height - 6, "text-anchor": "end" }, cut(x.label, width)));
    }
    this.drawing.append(axes);
    return { across, down, left, right, top, bottom };
  }
}

function cellOf(cell, place) {
  const content = cell ?? "–";
  if (place === 0) return el("th", { scope: "row" }, content);
  return el("td", { class: "number" }, content);
}

function cut(text, pixels) {
  const most = Math.max(4, Math.floor(pixels / WIDE));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** An entry of a legend: a small drawing and its words. */
function key(sample, text) {
  return el("li", {}, svg("svg", { width: 28, height: 14, "aria-hidden": "true" }, sample), el("bdi", {}, text));
}

/**
 * Lines over time, or over another number.
 *
 * data: {x: {label, time, format}, y: {label, format, domain, within}, series: [{name, style, colour, points: [{x, y,
 * low, high}]}]}; style is "solid", "dashed" or "dotted", colour a number from 1; a y of null leaves a gap. Series have
 * their points at the same x.
 */
export class LineChart extends Chart {
  isEmpty() {
    return !this.data.series.some((one) => one.points.some((point) => Number.isFinite(point.y)));
  }

  render(width) {
    const { series, x, y } = this.data;
    const all = series.flatMap((one) => one.points);
    const values = all.flatMap((point) => [point.y, point.low, point.high]);
    const domain = y.domain ?? extent(values, { within: y.within });
    const xs = [...new Set(all.map((point) => point.x))].sort((a, b) => a - b);
    const span = x.domain ?? (xs.length > 1 ? [xs[0], xs[xs.length - 1]] : [xs[0] - 1, xs[0] + 1]);
    const { across, down, top, bottom } = this.axes(width, { ...x, domain: span }, { ...y, domain });
    Object.assign(this, { across, down, top, bottom });
    fill(this.legend, ...series.map((one) => key(svg("line", { class: lineClass(one), x1: 1, x2: 27, y1: 7, y2: 7 }), one.name)));
    for (const one of [...series].reverse()) {
      const runs = runsOf(one.points);
      for (const run of runs) {
        if (run.some((point) => Number.isFinite(point.low))) {
          const upper = run.map((point) => `${across(point.x)},${down(point.high)}`);
          const lower = run.map((point) => `${across(point.x)},${down(point.low)}`).reverse();
          this.drawing.append(svg("polygon", { class: `band c${one.colour}`, points: [...upper, ...lower].join(" ") }));
        }
      }
      for (const run of runs) {
        const path = run.map((point) => `${across(point.x).toFixed(1)},${down(point.y).toFixed(1)}`).join(" ");
        if (run.length > 1) this.drawing.append(svg("polyline", { class: lineClass(one), points: path }));
        else {
          const [point] = run;
          this.drawing.append(svg("circle", { class: `dot c${one.colour}`, cx: across(point.x), cy: down(point.y), r: 2.5 }));
        }
      }
    }
    return xs;
  }

  away(value, x) {
    return Math.abs(this.across(value) - x);
  }

  highlight(place) {
    const at = this.values[place];
    const marks = [svg("line", { class: "hair", x1: this.across(at), x2: this.across(at), y1: this.top, y2: this.bottom })];
    for (const one of this.data.series) {
      const point = one.points.find((candidate) => candidate.x === at);
      if (point && Number.isFinite(point.y)) {
        marks.push(svg("circle", { class: `dot c${one.colour}`, cx: this.across(at), cy: this.down(point.y), r: 4 }));
      }
    }
    return marks;
  }

  words(place) {
    const at = this.values[place];
    const { x, y, series } = this.data;
    const parts = series.map((one) => {
      const point = one.points.find((candidate) => candidate.x === at);
      return `${one.name} ${valueOf(point, y.format)}`;
    });
    return `${(x.read ?? x.format ?? number)(at)}: ${parts.join(", ")}`;
  }

  table() {
    const { x, y, series } = this.data;
    const rows = new Map();
    series.forEach((one, column) => {
      for (const point of one.points) {
        if (!rows.has(point.x)) rows.set(point.x, series.map(() => null));
        rows.get(point.x)[column] = valueOf(point, y.format);
      }
    });
    const body = [...rows.entries()].sort(([a], [b]) => b - a).map(([at, cells]) => [(x.read ?? x.format ?? number)(at), ...cells]);
    return { head: [x.name ?? x.label ?? "", ...series.map((one) => one.name)], body };
  }
}

function lineClass(one) {
  return `line ${one.style ?? "solid"} c${one.colour}`;
}

function valueOf(point, format = number) {
  if (!point || !Number.isFinite(point.y)) return "–";
  if (!Number.isFinite(point.low)) return format(point.y);
  return `${format(point.y)} (${format(point.low)} … ${format(point.high)})`;
}

function runsOf(points) {
  const runs = [];
  let run = [];
  for (const point of points) {
    if (Number.isFinite(point.y)) run.push(point);
    else if (run.length) {
      runs.push(run);
      run = [];
    }
  }
  if (run.length) runs.push(run);
  return runs;
}

/**
 * Bars with intervals, one below the other, over an axis.
 *
 * data: {label, bars: [{name, value, low, high, colour, parts}], parts: [{name, colour}], domain, format}; low and high
 * may be left out. parts: what the bars are made of, and of each bar how much of each, from 0 on.
 */
export class BarChart extends Chart {
  constructor(place, options) {
    super(place, { row: 46, ...options });
    this.row = options.row ?? 46;
  }

  isEmpty() {
    return !this.data.bars.length;
  }

  render(width) {
    const { bars, parts = [], format = number } = this.data;
    const values = bars.flatMap((bar) => [bar.value, bar.low, bar.high, 0]).filter((value) => Number.isFinite(value));
    const domain = this.data.domain ?? [Math.min(...values), Math.max(...values) || 1];
    const scale = linear(domain, [6, width - 6]); // half a label's room at both ends
    const bottom = bars.length * this.row;
    this.size(bottom + 24);
    const ranged = bars.some((bar) => Number.isFinite(bar.low)) && this.data.interval;
    fill(
      this.legend,
      ...parts.map((one) => key(svg("rect", { class: `bar c${one.colour}`, x: 4, y: 1, width: 20, height: 12, rx: 2 }), one.name)),
      ...(ranged
        ? [key([svg("line", { class: "whisker", x1: 2, x2: 26, y1: 7, y2: 7 }), svg("line", { class: "whisker", x1: 2, x2: 2, y1: 3, y2: 11 }), svg("line", { class: "whisker", x1: 26, x2: 26, y1: 3, y2: 11 })], this.data.interval)]
        : []),
    );
    this.drawing.append(this.axis(width, scale, bottom));
    bars.forEach((bar, place) => {
      const y = place * this.row;
      const middle = y + 31;
      const shown = format(bar.value);
      const group = svg("g", { "aria-hidden": "true" });
      group.append(
        svg("title", {}, bar.name),
        svg("text", { class: "bar-name", x: 1, y: y + 17 }, cut(bar.name, (width - 90) * 0.95)),
        svg("text", { class: "bar-value", x: width - 1, y: y + 17, "text-anchor": "end" }, shown),
      );
      const piece = (from, to, colour) => {
        const ends = [from, to].map((end) => scale(clamp(end, domain)));
        const left = Math.min(...ends);
        group.append(svg("rect", { class: `bar c${colour}`, x: left, y: middle - 6, width: Math.max(Math.abs(ends[1] - ends[0]), 1), height: 12, rx: 2 }));
        return left;
      };
      let sum = 0;
      for (const one of bar.parts ? parts : []) {
        const value = bar.parts[one.name] ?? 0;
        if (!value) continue;
        const left = piece(sum, sum + value, one.colour);
        if (sum) group.append(svg("line", { class: "seam", x1: left, x2: left, y1: middle - 6, y2: middle + 6 })); // told apart without colours, too
        sum += value;
      }
      if (!bar.parts) piece(0, bar.value, bar.colour ?? 1);
      if (Number.isFinite(bar.low)) group.append(...whisker(scale(clamp(bar.low, domain)), scale(clamp(bar.high, domain)), middle));
      this.drawing.append(group);
    });
    return bars;
  }

  /** The axis below all bars, and where 0 is: an interval may well go below it. */
  axis(width, scale, bottom) {
    const places = ticks(scale.domain, Math.max(2, Math.floor(width / 90)));
    const text = this.data.format ?? labeller(places);
    const axis = svg("g", { class: "axes", "aria-hidden": "true" });
    for (const value of places) {
      const at = Math.round(scale(value)) + 0.5;
      const label = text(value);
      const half = (WIDE * label.length) / 2;
      axis.append(
        svg("line", { class: value ? "grid" : "axis", x1: at, x2: at, y1: 0, y2: bottom + 4 }),
        svg("text", { class: "tick", x: Math.min(Math.max(at, half), width - half), y: bottom + 18, "text-anchor": "middle" }, label),
      );
    }
    return axis;
  }

  nearest(x, y) {
    return Math.min(Math.max(Math.floor(y / this.row), 0), this.values.length - 1);
  }

  highlight(place) {
    return [svg("rect", { class: "lit", x: 0, y: place * this.row + 1, width: this.width, height: this.row - 2, rx: 6 })];
  }

  words(place) {
    const bar = this.values[place];
    const format = this.data.format ?? number;
    const range = Number.isFinite(bar.low) ? `, probably between ${format(bar.low)} and ${format(bar.high)}` : "";
    const made = bar.parts ? `, of it ${this.data.parts.map((one) => `${one.name} ${format(bar.parts[one.name] ?? 0)}`).join(", ")}` : "";
    return `${bar.name}: ${format(bar.value)}${range}${made}`;
  }

  table() {
    const format = this.data.format ?? number;
    const ranged = this.data.bars.some((bar) => Number.isFinite(bar.low));
    return {
      head: [this.data.label ?? "", "Value", ...(ranged ? ["From", "To"] : [])],
      body: this.data.bars.map((bar) => [
        el("bdi", {}, bar.name),
        format(bar.value),
        ...(ranged ? [Number.isFinite(bar.low) ? format(bar.low) : null, Number.isFinite(bar.high) ? format(bar.high) : null] : []),
      ]),
    };
  }
}

function clamp(value, [from, to]) {
  return Math.min(Math.max(value, Math.min(from, to)), Math.max(from, to));
}

function whisker(from, to, middle) {
  return [
    svg("line", { class: "halo", x1: from, x2: to, y1: middle, y2: middle }),
    svg("line", { class: "whisker", x1: from, x2: to, y1: middle, y2: middle }),
    svg("line", { class: "whisker", x1: from, x2: from, y1: middle - 4, y2: middle + 4 }),
    svg("line", { class: "whisker", x1: to, x2: to, y1: middle - 4, y2: middle + 4 }),
  ];
}

/**
 * Points with a box of confidence each.
 *
 * data: {x: {label, format, domain}, y: likewise, points: [{name, x, y, xLow, xHigh, yLow, yHigh, marked, strength,
 * note}], marked: "what marked points are", others: "what the rest are", stairs: whether marked points are joined}. A
 * domain that runs backwards puts small values to the right, or up.
 */
export class ScatterChart extends Chart {
  isEmpty() {
    return !this.data.points.length;
  }

  render(width) {
    const { x, y } = this.data;
    const points = [...this.data.points].sort((a, b) => Math.sign(x.domain[1] - x.domain[0]) * (a.x - b.x));
    const { across, down, left, right, top, bottom } = this.axes(width, x, y);
    Object.assign(this, { across, down });
    fill(
      this.legend,
      key(svg("circle", { class: "spot marked", cx: 14, cy: 7, r: 5 }), this.data.marked),
      points.some((point) => !point.marked) && key(svg("path", { class: "spot", d: diamond(14, 7, 5) }), this.data.others),
      key(svg("rect", { class: "doubt", x: 4, y: 1, width: 20, height: 12 }), "where the means probably are"),
      this.data.stairs && key(svg("line", { class: "stairs", x1: 1, x2: 27, y1: 7, y2: 7 }), "the front"),
    );
    const inside = ([a, b], low, high) => [clamp(a, [low, high]), clamp(b, [low, high])];
    const boxes = svg("g", { "aria-hidden": "true" });
    const spots = svg("g", { "aria-hidden": "true" });
    for (const point of points) {
      if (point.marked) {
        const [x1, x2] = inside([across(point.xLow), across(point.xHigh)], left, right);
        const [y1, y2] = inside([down(point.yLow), down(point.yHigh)], top, bottom);
        boxes.append(boxOf(x1, x2, y1, y2));
      }
      spots.append(spotOf(point, across(point.x), down(point.y)));
    }
    this.drawing.append(boxes);
    if (this.data.stairs) this.drawing.append(stairs(points.filter((point) => point.marked), across, down, { left, bottom }));
    this.drawing.append(spots);
    return points;
  }

  away(point, x, y) {
    return Math.hypot(this.across(point.x) - x, this.down(point.y) - y);
  }

  highlight(place) {
    const point = this.values[place];
    const [x, y] = [this.across(point.x), this.down(point.y)];
    return [
      boxOf(this.across(point.xLow), this.across(point.xHigh), this.down(point.yLow), this.down(point.yHigh), "doubt strong"),
      svg("circle", { class: "ring", cx: x, cy: y, r: 9 }),
    ];
  }

  words(place) {
    const point = this.values[place];
    const { x, y } = this.data;
    return [
      el("bdi", { class: "name" }, point.name),
      `: ${x.name} ${x.format(point.x)}, ${y.name} ${y.format(point.y)}${point.note ? `; ${point.note}` : ""}`,
    ];
  }

  table() {
    const { x, y, points } = this.data;
    return {
      head: ["Arm", x.name, y.name, "On the front", "Confidence"],
      body: points.map((point) => [
        el("bdi", { class: "name" }, point.name),
        `${x.format(point.x)} (${x.format(Math.min(point.xLow, point.xHigh))} … ${x.format(Math.max(point.xLow, point.xHigh))})`,
        `${y.format(point.y)} (${y.format(Math.min(point.yLow, point.yHigh))} … ${y.format(Math.max(point.yLow, point.yHigh))})`,
        point.marked ? "yes" : "no",
        point.confidence ?? "–",
      ]),
    };
  }
}

function boxOf(x1, x2, y1, y2, kind = "doubt") {
  return svg("rect", {
    class: kind,
    x: Math.min(x1, x2),
    y: Math.min(y1, y2),
    width: Math.abs(x2 - x1),
    height: Math.abs(y2 - y1),
    rx: 3,
  });
}

function diamond(x, y, size) {
  return `M${x} ${y - size}L${x + size} ${y}L${x} ${y + size}L${x - size} ${y}Z`;
}

function spotOf(point, x, y) {
  if (point.marked) return svg("circle", { class: "spot marked", cx: x, cy: y, r: 3.5 + 3 * (point.strength ?? 1) });
  return svg("path", { class: "spot", d: diamond(x, y, 3 + 2 * (point.strength ?? 0)) });
}

/** The front as stairs: from each marked point down to the next on its right. */
function stairs(points, across, down, { left, bottom }) {
  const corners = [];
  let last = null;
  for (const point of points) {
    const [x, y] = [across(point.x), down(point.y)];
    corners.push(last === null ? `${left},${y}` : `${last[0]},${y}`, `${x},${y}`);
    last = [x, y];
  }
  if (last !== null) corners.push(`${last[0]},${bottom}`);
  return svg("polyline", { class: "stairs", points: corners.join(" "), "aria-hidden": "true" });
}
