// The chart one draws on: grey the data, orange the target.

import { Frame, Surface, faded, palette, percent } from "./axes.js";
import { TOOLS, normalized } from "./sketch.js";

const HEADROOM = 1.18;
const MARGINS = { left: 42, right: 8, top: 24, bottom: 36 };

export class TargetChart {
  /** `changed(heights, done)`: while a stroke lasts, and once when it ends. */
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed;
    this.tool = "curve";
    this.heights = null;
    this.mixture = null;
    this.top = 0.2;
    this.cursor = null;
    this.surface = new Surface(canvas, (context, width, height) => this.paint(context, width, height));
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => this.end());
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerleave", () => { this.hover = null; this.surface.draw(); });
    canvas.addEventListener("blur", () => { this.cursor = null; this.surface.draw(); });
  }

  /** The chart of a feature: edges, data, unit. */
  show(chart) {
    this.chart = chart;
    this.edges = chart.edges[0];
    this.heights = null;
    this.mixture = null;
    this.top = this.wanted();
    this.surface.draw();
  }

  /** Another target; the axis glides to what suits it. */
  set(heights) {
    this.heights = heights && heights.slice();
    this.glide();
    this.describe();
  }

  setMixture(heights) {
    this.mixture = heights;
    this.surface.draw();
  }

  wanted() {
    return HEADROOM * Math.max(...this.chart.data, ...(this.heights ?? []), 0.02);
  }

  glide() {
    const [from, to, start] = [this.top, this.wanted(), performance.now()];
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const step = (now) => {
      if (this.stroke) return;
      const part = still ? 1 : Math.min(1, Math.max(0, (now - start) / 240));
      this.top = from + (to - from) * (1 - (1 - part) ** 3);
      this.surface.drawNow();
      if (part < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  // -- drawing by hand ---------------------------------------------------------------------------------------------

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const value = this.frame.valueX(event.clientX - box.left);
    const place = ((value - this.frame.x0) / (this.frame.x1 - this.frame.x0)) * this.chart.data.length;
    return [place, Math.max(0, this.frame.valueY(event.clientY - box.top))];
  }

  begin(event) {
    if (!this.chart || (event.pointerType === "mouse" && event.button === 1)) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.heights ??= this.chart.data.map(() => 0);
    this.stroke = { tool: event.button === 2 || event.shiftKey ? "erase" : this.tool, last: this.point(event) };
    this.apply(this.stroke.last);
  }

  move(event) {
    this.hover = this.frame ? this.point(event) : null;
    if (!this.stroke) return this.surface.draw();
    for (const one of event.getCoalescedEvents?.() ?? [event]) this.apply(this.point(one));
    if (event.getCoalescedEvents && !event.getCoalescedEvents().length) this.apply(this.point(event));
  }

  apply(point) {
    this.heights = TOOLS[this.stroke.tool](this.heights, this.stroke.last, point);
    this.stroke.last = point;
    this.surface.draw();
    this.changed(this.heights, false);
  }

  /** What was drawn becomes shares; the axis changes with it, so the drawing stays where it is. */
  end() {
    if (!this.stroke) return;
    this.stroke = null;
    const sum = this.heights.reduce((total, height) => total + height, 0);
    if (sum > 0) {
      this.heights = normalized(this.heights);
      this.top /= sum;
    }
    this.glide();
    this.describe();
    this.changed(this.heights, true);
  }

  key(event) {
    if (!this.chart) return;
    const last = this.chart.data.length - 1;
    const step = this.wanted() * 0.04;
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last, PageUp: -5, PageDown: 5 };
    const bin = this.cursor ?? Math.round(last / 2);
    this.heights ??= this.chart.data.map(() => 0);
    if (event.key in moves) this.cursor = Math.min(last, Math.max(0, bin + (this.cursor === null ? 0 : moves[event.key])));
    else if (event.key === "ArrowUp" || event.key === "ArrowDown" || event.key === "Delete" || event.key === "Backspace") {
      this.cursor = bin;
      const height = event.key === "ArrowUp" ? this.heights[bin] + step : event.key === "ArrowDown" ? this.heights[bin] - step : 0;
      this.heights[bin] = Math.max(0, height);
      this.heights = normalized(this.heights);
      this.glide();
      this.changed(this.heights, true);
    } else return;
    event.preventDefault();
    this.describe();
    this.surface.draw();
  }

  /** For those who do not see it. */
  describe() {
    const bin = this.cursor ?? 0;
    const [low, high, share] = [this.edges[bin], this.edges[bin + 1], this.heights?.[bin] ?? 0];
    this.canvas.setAttribute("aria-valuenow", Math.round(share * 100));
    this.canvas.setAttribute("aria-valuetext", `${low.toFixed(2)} to ${high.toFixed(2)} ${this.chart.unit}: ${percent(share)} of the time`);
  }

  // -- what it looks like ------------------------------------------------------------------------------------------

  paint(context, width, height) {
    if (!this.chart) return;
    const { data, target, ink, soft } = palette();
    const edges = this.edges;
    const frame = this.frame = new Frame(width, height, MARGINS, [edges[0], edges.at(-1)], [0, this.top]);
    frame.axisY(context, "share of time", percent);
    columns(context, frame, edges, this.chart.data, { fill: data, gap: 0 });
    if (this.heights) {
      if (this.tool === "bars") columns(context, frame, edges, this.heights, { fill: faded(target, 0.16), line: target, gap: 1 });
      else smoothArea(context, frame, edges, this.heights, target);
    }
    if (this.mixture) {
      context.setLineDash([4, 3]);
      outline(context, frame, edges, this.mixture, soft, 1.3);
      context.setLineDash([]);
    }
    const bin = this.cursor ?? (this.hover && !this.stroke ? Math.floor(this.hover[0]) : null);
    if (bin !== null && bin >= 0 && bin < this.chart.data.length) this.readout(context, frame, bin, ink);
    frame.axisX(context, this.chart.unit ? `${this.chart.labels[0]} (${this.chart.unit})` : this.chart.labels[0]);
    key(context, frame, soft, [["the data", data, true], ["the target", target, false]]);
  }

  readout(context, frame, bin, ink) {
    const [left, right] = [frame.x(this.edges[bin]), frame.x(this.edges[bin + 1])];
    context.fillStyle = faded(ink, 0.06);
    context.fillRect(left, frame.top, right - left, frame.bottom - frame.top);
    if (this.cursor === null) return;
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, frame.top + 0.5, right - left - 1, frame.bottom - frame.top - 1);
  }
}

/** Filled bins. */
export function columns(context, frame, edges, heights, { fill, line, gap = 0 }) {
  context.fillStyle = fill;
  heights.forEach((height, bin) => {
    if (height <= 0) return;
    const [left, right] = [Math.round(frame.x(edges[bin])), Math.round(frame.x(edges[bin + 1])) - gap];  // whole pixels: no seams
    const y = Math.max(frame.top, frame.y(height));
    context.fillRect(left, y, right - left, frame.bottom - y);
    if (line) {
      context.fillStyle = line;
      context.fillRect(left, y - 1, right - left, 2);
      context.fillStyle = fill;
    }
  });
}

/** The steps of a histogram as one line. */
export function outline(context, frame, edges, heights, color, width) {
  context.beginPath();
  context.moveTo(frame.x(edges[0]), frame.bottom);
  heights.forEach((height, bin) => {
    const y = Math.max(frame.top, frame.y(height));
    context.lineTo(frame.x(edges[bin]), y);
    context.lineTo(frame.x(edges[bin + 1]), y);
  });
  context.lineTo(frame.x(edges.at(-1)), frame.bottom);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.stroke();
}

/** A curve through the tops of the bins that does not overshoot (monotone between neighbors), and the area below it. */
function smoothArea(context, frame, edges, heights, color) {
  const half = (frame.x(edges[1]) - frame.x(edges[0])) / 2;
  const xs = heights.map((_, bin) => frame.x(edges[bin]) + half);
  const ys = heights.map((height) => Math.max(frame.top, frame.y(height)));
  const slopes = ys.map((y, k) => {
    if (k === 0 || k === ys.length - 1) return 0;
    const [before, after] = [y - ys[k - 1], ys[k + 1] - y];
    return before * after <= 0 ? 0 : (2 * before * after) / (before + after);
  });
  const path = new Path2D();
  path.moveTo(frame.left, ys[0]);
  path.lineTo(xs[0], ys[0]);
  for (let k = 1; k < xs.length; k++) {
    const third = (xs[k] - xs[k - 1]) / 3;
    path.bezierCurveTo(xs[k - 1] + third, ys[k - 1] + slopes[k - 1] / 3, xs[k] - third, ys[k] - slopes[k] / 3, xs[k], ys[k]);
  }
  path.lineTo(frame.right, ys.at(-1));
  const area = new Path2D(path);
  area.lineTo(frame.right, frame.bottom);
  area.lineTo(frame.left, frame.bottom);
  const shade = context.createLinearGradient(0, frame.top, 0, frame.bottom);
  shade.addColorStop(0, faded(color, 0.3));
  shade.addColorStop(1, faded(color, 0.08));
  context.fillStyle = shade;
  context.fill(area);
  context.strokeStyle = color;
  context.lineWidth = 2.4;
  context.lineJoin = "round";
  context.stroke(path);
}

/** What the colors are, at the top right. */
function key(context, frame, ink, entries) {
  context.textBaseline = "middle";
  context.textAlign = "right";
  let right = frame.right;
  for (const [words, color, filled] of entries.toReversed()) {
    context.fillStyle = ink;
    context.fillText(words, right, 10);
    right -= context.measureText(words).width + 6;
    context.fillStyle = color;
    if (filled) context.fillRect(right - 12, 5, 12, 10);
    else context.fillRect(right - 14, 9, 14, 2.4);
    right -= 28;
  }
}
