// What was achieved fills the target up: a full bin is as high as the target when the episodes end.

import { Frame, Surface, faded, palette, percent } from "./axes.js";
import { columns, outline } from "./target_chart.js";

const MARGINS = { left: 42, right: 8, top: 22, bottom: 36 };

export class AchievedChart {
  constructor(canvas) {
    this.target = this.achieved = null;
    this.part = 0;
    this.surface = new Surface(canvas, (context, width, height) => this.paint(context, width, height));
  }

  show(chart) {
    this.chart = chart;
    this.target = this.achieved = null;
    this.surface.draw();
  }

  setTarget(heights) {
    this.target = heights;
    this.surface.draw();
  }

  /** Shares of what was played, and how much of the whole that is. */
  fill(achieved, part) {
    this.achieved = achieved;
    this.part = part;
    this.surface.draw();
  }

  paint(context, width, height) {
    if (!this.chart) return;
    const { target, rollouts } = palette();
    const edges = this.chart.edges[0];
    const filled = this.achieved?.map((share) => share * this.part);
    const top = 1.15 * Math.max(...(this.target ?? this.chart.data), ...(filled ?? []), 0.02);
    const frame = new Frame(width, height, MARGINS, [edges[0], edges.at(-1)], [0, top]);
    frame.axisY(context, "share of the episodes", percent, 3);
    if (this.target) columns(context, frame, edges, this.target, { fill: faded(target, 0.12) });
    if (filled) columns(context, frame, edges, filled, { fill: rollouts, gap: 1 });
    if (this.target) outline(context, frame, edges, this.target, target, 2);
    frame.axisX(context, this.chart.unit ? `${this.chart.labels[0]} (${this.chart.unit})` : this.chart.labels[0]);
  }
}
