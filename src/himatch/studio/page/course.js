// The episode over time: what the robot is conditioned on as a map, the feature as lines, and small lines for the tiles.

import { Frame, Surface, faded, palette } from "./axes.js";

const MARGINS = { left: 42, right: 8, top: 20, bottom: 36 };

/** The states of a view so far, and the charts that show them. */
export class Course {
  constructor(canvas, lines) {
    this.surface = new Surface(canvas, (context, width, height) => this.paint(context, width, height));
    this.lines = Object.entries(lines).map(([what, one]) => {
      const surface = new Surface(one, (context, width, height) => this.paintLine(what, context, width, height));
      return surface;
    });
    this.states = [];
    this.changes = [];
    this.map = document.createElement("canvas");
  }

  show(chart, steps, dt) {
    this.chart = chart;
    this.begin(steps, dt);
  }

  begin(steps, dt) {
    Object.assign(this, { steps, dt, states: [], changes: [] });
    this.map.width = Math.min(Math.max(steps, 1), 1000);
    this.map.height = this.chart?.dims === 1 ? this.chart.data.length : 1;
    this.draw();
  }

  add(state) {
    const last = this.states.at(-1);
    if (last && state.step <= last.step) this.states.pop();
    this.states.push(state);
    if (state.conditioning && this.chart.dims === 1) this.column(this.states.at(-2)?.step ?? 0, state);
    this.draw();
  }

  /** Another target may last longer, or not as long. */
  last(steps) {
    if (steps === this.steps) return;
    this.steps = steps;
    this.recolor();
  }

  change(step) {
    this.changes.push(step);
    this.draw();
  }

  draw() {
    this.surface.draw();
    this.lines.forEach((surface) => surface.draw());
  }

  /** One column of the map: shares as strength of the target's color. */
  column(from, { step, conditioning }) {
    const context = this.map.getContext("2d");
    const { target } = palette();
    const [scale, most] = [this.map.width / this.steps, Math.max(...conditioning, 1e-9)];
    const left = Math.floor(from * scale);
    const wide = Math.max(1, Math.ceil(step * scale) - left);
    context.clearRect(left, 0, wide, this.map.height);
    conditioning.forEach((share, bin) => {
      context.globalAlpha = (share / most) ** 0.7 * 0.85;
      context.fillStyle = target;
      context.fillRect(left, this.map.height - 1 - bin, wide, 1);
    });
    context.globalAlpha = 1;
  }

  /** After the colors have changed. */
  recolor() {
    this.map.width = this.map.width;  // empties it
    this.states.forEach((state, k) => state.conditioning && this.chart.dims === 1 && this.column(this.states[k - 1]?.step ?? 0, state));
    this.draw();
  }

  range() {
    if (this.chart.edges) return [this.chart.edges[0][0], this.chart.edges[0].at(-1)];
    const seen = this.states.flatMap((state) => (state.values ?? []).map((one) => one?.[0] ?? 0));
    return [Math.min(0, ...seen), Math.max(1, ...seen)];
  }

  paint(context, width, height) {
    if (!this.chart) return;
    const { rollouts, ink } = palette();
    const frame = new Frame(width, height, MARGINS, [0, this.steps * this.dt], this.range());
    frame.axisY(context, this.chart.unit ? `${this.chart.labels[0]} (${this.chart.unit})` : this.chart.labels[0], String, 4);
    const shown = (this.states.at(-1)?.step ?? 0) / this.steps;
    context.imageSmoothingEnabled = false;
    if (shown > 0) {
      context.drawImage(this.map, 0, 0, Math.max(1, this.map.width * shown), this.map.height,
        frame.left, frame.top, (frame.right - frame.left) * shown, frame.bottom - frame.top);
    }
    context.lineJoin = "round";
    const robots = this.states.at(-1)?.values?.length ?? 0;
    for (let robot = robots - 1; robot >= 0; robot--) {
      context.strokeStyle = robot ? faded(rollouts, 0.22) : rollouts;
      context.lineWidth = robot ? 1 : 1.8;
      context.beginPath();
      for (const state of this.states) {
        const value = state.values?.[robot]?.[0];
        if (value != null) context.lineTo(frame.x(state.step * this.dt), Math.min(frame.bottom, Math.max(frame.top, frame.y(value))));
      }
      context.stroke();
    }
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    for (const step of this.changes) {
      const x = Math.round(frame.x(step * this.dt)) + 0.5;
      context.beginPath();
      context.moveTo(x, frame.top);
      context.lineTo(x, frame.bottom);
      context.stroke();
    }
    context.setLineDash([]);
    frame.axisX(context, "time (s)");
  }

  paintLine(what, context, width, height) {
    const values = this.states.filter((state) => state[what] != null && state.step > 0).map((state) => [state.step / this.steps, state[what]]);
    if (values.length < 2) return;
    const all = values.map(([, value]) => value);
    const low = Math.min(0, ...all);
    const span = Math.max(what === "played" ? 1 : 0, ...all) - low || 1;
    context.strokeStyle = faded(palette().rollouts, 0.75);
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.beginPath();
    for (const [part, value] of values) context.lineTo(1 + part * (width - 2), height - 2 - ((value - low) / span) * (height - 4));
    context.stroke();
  }
}
