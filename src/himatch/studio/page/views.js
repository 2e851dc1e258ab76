// Three ways to show rollouts: the robot from geometry and poses, the environment's own pictures, traces of a feature.
// Each has frame(buffer), begin(ready), recolor(), dispose(), picture() (a canvas), and says `where` the first robot is.

import { Frame, Surface, faded, palette } from "./axes.js";
import { Playback } from "./playback.js";

const floats = (buffer) => new Float32Array(buffer, 0, buffer.byteLength >> 2);
const MARGINS = { left: 52, right: 20, top: 88, bottom: 44 };
const LANE = 0.85;  // meters between robots that share a track

/** Robots in three dimensions; three.js is loaded when the first one is shown. */
export class GeometryView {
  static async of(container, geometry) {
    const [{ Scene }, parts] = await Promise.all([import("./scene.js"), import("./robot.js")]);
    return new GeometryView(container, geometry, new Scene(container), parts);
  }

  constructor(container, geometry, scene, parts) {
    Object.assign(this, { geometry, scene, parts, robots: [], where: null });
    this.model = new parts.Model(geometry);
    this.playback = new Playback(this.model.bodies);
    scene.scene.add(this.model.world());
    scene.look(geometry.camera);
    this.stand(1);
    this.tick = this.tick.bind(this);
    this.running = requestAnimationFrame(this.tick);
  }

  shades(ghost) {
    const { rollouts, paler } = palette();
    return ghost ? [paler, paler] : [rollouts, paler];
  }

  stand(count) {
    while (this.robots.length > count) this.robots.pop().dispose();
    while (this.robots.length < count) {
      const ghost = this.robots.length > 0;
      const robot = new this.parts.Robot(this.model, this.shades(ghost), ghost, this.scene.reflections);
      this.scene.scene.add(robot.group);
      this.robots.push(robot);
    }
    const rest = this.geometry.rest?.flat();
    this.robots.forEach((robot) => {
      robot.group.visible = Boolean(rest);
      if (rest) robot.pose(rest, rest, 0);
    });
    this.lanes = null;
    this.scene.changed = true;
  }

  begin({ robots }) {
    this.playback.clear();
    this.stand(robots);
    this.jump = true;
  }

  frame(buffer) {
    this.playback.push(floats(buffer));
    this.fresh = true;
  }

  /** Robots that cannot leave the plane y = 0 run side by side; others where they are. */
  lane({ poses }) {
    const follow = 7 * (this.geometry.follow ?? 0);
    this.lanes ??= poses.every((pose) => Math.abs(pose[follow + 1]) < 1e-4);
    this.robots.forEach((robot, k) => { robot.group.position.y = this.lanes ? LANE * k : 0; });
  }

  tick(now) {
    this.running = requestAnimationFrame(this.tick);
    const elapsed = this.last ? now - this.last : 16;
    this.last = now;
    if (document.hidden) return;
    const shown = this.playback.advance(elapsed);
    if (shown && shown.a.poses.length === this.robots.length) {
      this.scene.changed ||= this.step !== this.playback.shown;
      this.step = this.playback.shown;
      this.lane(shown.a);
      this.robots.forEach((robot, k) => {
        robot.group.visible = true;
        robot.pose(shown.a.poses[k], shown.b.poses[k], shown.part);
      });
    }
    const lead = this.robots[0].bodies[this.geometry.follow ?? 0].position;
    this.where = shown && lead.x;
    this.scene.follow(lead.x, lead.y, this.jump ? 1 : 1 - Math.exp(-elapsed / 70));
    this.jump = false;
    this.scene.measure(this.lanes ?? false);
    if (this.scene.render(elapsed)) this.after?.();
  }

  set following(on) {
    this.scene.following = on;
    if (on) this.scene.look(this.geometry.camera);
  }

  recolor() {
    this.scene.recolor();
    this.robots.forEach((robot) => robot.recolor(this.shades(robot.ghost)));
    this.scene.changed = true;
  }

  /** The canvas, drawn this moment: a browser forgets it otherwise. */
  picture() {
    this.scene.changed = true;
    this.scene.render(0);
    return this.scene.canvas;
  }

  dispose() {
    cancelAnimationFrame(this.running);
    this.robots.forEach((robot) => robot.dispose());
    this.scene.dispose();
  }
}

/** Pictures that the environment draws of its first robot. */
export class FramesView {
  constructor(container) {
    this.image = new Image();
    this.image.alt = "The environment's own picture of the first robot";
    this.canvas = document.createElement("canvas");
    container.append(this.image);
  }

  begin() {}

  frame(buffer) {
    if (this.busy) return;  // a picture that comes too soon is left out
    this.busy = true;
    const address = URL.createObjectURL(new Blob([new Uint8Array(buffer, 8)], { type: "image/jpeg" }));
    this.image.onload = this.image.onerror = () => {
      URL.revokeObjectURL(address);
      this.busy = false;
      this.after?.();
    };
    this.image.src = address;
  }

  recolor() {}

  picture() {
    [this.canvas.width, this.canvas.height] = [this.image.naturalWidth || 2, this.image.naturalHeight || 2];
    this.canvas.getContext("2d").drawImage(this.image, 0, 0);
    return this.canvas;
  }

  dispose() {
    this.image.remove();
  }
}

/** The feature of every robot, as lines over time. Two features: paths on their plane. */
export class TracesView {
  constructor(container, chart) {
    this.chart = chart;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "Traces of the feature");
    container.append(this.canvas);
    this.begin({ robots: 0, steps: 1, dt: 1 });
    this.surface = new Surface(this.canvas, (context, width, height) => this.paint(context, width, height));
  }

  begin({ robots, steps, dt }) {
    Object.assign(this, { steps, dt: dt ?? 0.05, traces: Array.from({ length: robots }, () => []) });
  }

  frame(buffer) {
    const values = floats(buffer);
    const dims = this.chart.dims;
    const [step] = values;
    this.traces.forEach((trace, robot) => {
      const at = 2 + robot * (1 + dims);
      if (values[at] > 0) trace.push([step, ...values.subarray(at + 1, at + 1 + dims)]);
    });
    this.surface.draw();
    this.after?.();
  }

  recolor() {
    this.surface.draw();
  }

  paint(context, width, height) {
    const { rollouts } = palette();
    const { labels, units = [] } = this.chart;
    const plane = this.chart.dims === 2;
    const name = (k) => (units[k] ? `${labels[k]} (${units[k]})` : labels[k]);
    const end = (k) => [this.chart.low?.[k] ?? -1, this.chart.high?.[k] ?? 1];
    const frame = new Frame(width, height, MARGINS, plane ? end(0) : [0, this.steps * this.dt], plane ? end(1) : end(0));
    frame.axisY(context, name(plane ? 1 : 0), String, 5);
    frame.axisX(context, plane ? name(0) : "time (s)");
    const x = (value) => frame.x(plane ? value : value * this.dt);
    const y = (value) => frame.y(value);
    this.traces.toReversed().forEach((trace, back) => {
      const first = back === this.traces.length - 1;
      context.strokeStyle = first ? rollouts : faded(rollouts, 0.25);
      context.lineWidth = first ? 2 : 1;
      context.beginPath();
      for (const [step, a, b] of trace) plane ? context.lineTo(x(a), y(b)) : context.lineTo(x(step), y(a));
      context.stroke();
      const last = trace.at(-1);
      if (!last) return;
      context.beginPath();
      context.arc(plane ? x(last[1]) : x(last[0]), plane ? y(last[2]) : y(last[1]), first ? 5 : 3, 0, 7);
      context.fillStyle = first ? rollouts : faded(rollouts, 0.4);
      context.fill();
    });
  }

  picture() {
    this.surface.drawNow();
    return this.canvas;
  }

  dispose() {
    this.surface.observer.disconnect();
    this.canvas.remove();
  }
}

/** The view that a run has. */
export async function viewOf(run, container, chart, geometry) {
  if (run.view === "geometry") return GeometryView.of(container, geometry);
  return run.view === "frames" ? new FramesView(container) : new TracesView(container, chart);
}
