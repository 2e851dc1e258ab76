// Two features: a target is painted on their plane; what was achieved appears beside it.

import { Frame, Surface, faded, palette } from "./axes.js";
import { dab } from "./sketch.js";

const MARGINS = { left: 42, right: 8, top: 24, bottom: 36 };

const total = (heights) => heights.flat().reduce((sum, height) => sum + height, 0);
const most = (heights) => Math.max(...heights.flat(), 1e-12);
const name = (chart, k) => (chart.units?.[k] ?? chart.unit ? `${chart.labels[k]} (${chart.units?.[k] ?? chart.unit})` : chart.labels[k]);

/** Cells as strength of a color. */
function cells(context, frame, [xs, ys], heights, color, strongest) {
  context.fillStyle = color;
  heights.forEach((row, i) => row.forEach((height, j) => {
    if (height <= strongest * 1e-3) return;
    context.globalAlpha = Math.min(1, Math.sqrt(height / strongest)) * 0.9;
    const [left, top] = [Math.round(frame.x(xs[i])), Math.round(frame.y(ys[j + 1]))];  // whole pixels: no seams
    context.fillRect(left, top, Math.round(frame.x(xs[i + 1])) - left, Math.round(frame.y(ys[j])) - top);
  }));
  context.globalAlpha = 1;
}

/** A line around the cells that hold nine tenths of it. */
function contour(context, frame, [xs, ys], heights, color) {
  const sorted = heights.flat().toSorted((a, b) => b - a);
  const whole = sorted.reduce((sum, height) => sum + height, 0);
  let [held, level] = [0, Infinity];
  for (const height of sorted) {
    if (held >= 0.9 * whole) break;
    held += height;
    level = height;
  }
  const inside = (i, j) => (heights[i]?.[j] ?? 0) >= level && level > 0;
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  heights.forEach((row, i) => row.forEach((_, j) => {
    if (!inside(i, j)) return;
    const [left, right, low, high] = [frame.x(xs[i]), frame.x(xs[i + 1]), frame.y(ys[j]), frame.y(ys[j + 1])];
    if (!inside(i - 1, j)) { context.moveTo(left, low); context.lineTo(left, high); }
    if (!inside(i + 1, j)) { context.moveTo(right, low); context.lineTo(right, high); }
    if (!inside(i, j - 1)) { context.moveTo(left, low); context.lineTo(right, low); }
    if (!inside(i, j + 1)) { context.moveTo(left, high); context.lineTo(right, high); }
  }));
  context.stroke();
}

class Plane {
  constructor(canvas) {
    this.canvas = canvas;
    this.surface = new Surface(canvas, (context, width, height) => this.paint(context, width, height));
  }

  axes(context, width, height) {
    const { edges } = this.chart;
    const frame = new Frame(width, height, MARGINS, [edges[0][0], edges[0].at(-1)], [edges[1][0], edges[1].at(-1)]);
    cells(context, frame, edges, this.chart.data, palette().data, most(this.chart.data));
    return frame;
  }

  names(context, frame) {
    frame.axisY(context, name(this.chart, 1), String, 4);
    frame.axisX(context, name(this.chart, 0));
  }
}

/** To draw on; the same as a TargetChart from outside. */
export class PlaneChart extends Plane {
  constructor(canvas, changed) {
    super(canvas);
    Object.assign(this, { changed, tool: "curve", heights: null });
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.stroke && this.apply(event));
    for (const what of ["pointerup", "pointercancel"]) canvas.addEventListener(what, () => this.end());
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  show(chart) {
    this.chart = chart;
    this.heights = null;
    this.surface.draw();
  }

  set(heights) {
    this.heights = heights && heights.map((row) => row.slice());
    this.surface.draw();
  }

  setMixture() {}

  begin(event) {
    if (!this.chart) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.heights ??= this.chart.data.map((row) => row.map(() => 0));
    this.stroke = event.button === 2 || event.shiftKey ? "erase" : this.tool;
    this.strength = 0.06 * (total(this.heights) > 0 ? most(this.heights) : 1);
    this.apply(event);
  }

  apply(event) {
    const box = this.canvas.getBoundingClientRect();
    const { frame, heights } = this;
    const place = (value, low, high, count) => ((value - low) / (high - low)) * count;
    const at = [
      place(frame.valueX(event.clientX - box.left), frame.x0, frame.x1, heights.length),
      place(frame.valueY(event.clientY - box.top), frame.y0, frame.y1, heights[0].length),
    ];
    this.heights = dab(heights, at, this.stroke, this.strength);
    this.surface.draw();
    this.changed(this.heights, false);
  }

  end() {
    if (!this.stroke) return;
    this.stroke = null;
    this.changed(this.heights, true);
  }

  paint(context, width, height) {
    if (!this.chart) return;
    this.frame = this.axes(context, width, height);
    if (this.heights && total(this.heights) > 0) cells(context, this.frame, this.chart.edges, this.heights, palette().target, most(this.heights));
    this.names(context, this.frame);
  }
}

/** What was achieved in blue, around it the target's outline; the same as an AchievedChart from outside. */
export class PlaneAchieved extends Plane {
  show(chart) {
    Object.assign(this, { chart, target: null, achieved: null });
    this.surface.draw();
  }

  setTarget(heights) {
    this.target = heights;
    this.surface.draw();
  }

  fill(achieved, part) {
    Object.assign(this, { achieved, part });
    this.surface.draw();
  }

  paint(context, width, height) {
    if (!this.chart) return;
    const { rollouts, target } = palette();
    const frame = this.axes(context, width, height);
    const { edges } = this.chart;
    if (this.target) cells(context, frame, edges, this.target, faded(target, 0.35), most(this.target));
    if (this.achieved && total(this.achieved) > 0) cells(context, frame, edges, this.achieved, rollouts, most(this.target ?? this.achieved) / Math.max(this.part, 1e-3));
    if (this.target) contour(context, frame, edges, this.target, target);
    this.names(context, frame);
  }
}
