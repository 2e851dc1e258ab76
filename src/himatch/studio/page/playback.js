// Frames arrive some 20 times a second; screens show 60. Poses in between are interpolated, a moment behind the newest.

const BEHIND = 1.6;  // frames that are held back, so that one which comes late is not missed

/** The poses of every robot: `[x, y, z, qw, qx, qy, qz]` per body, one after the other. */
export class Playback {
  constructor(bodies) {
    this.size = bodies * 7;
    this.clear();
  }

  clear() {
    this.frames = [];
    this.shown = null;
    this.rate = 0;
    this.arrived = null;
  }

  push(floats) {
    const [step, robots] = floats;
    const active = [];
    const poses = [];
    for (let robot = 0, at = 2; robot < robots; robot++, at += 1 + this.size) {
      active.push(floats[at] > 0);
      poses.push(floats.subarray(at + 1, at + 1 + this.size));
    }
    const last = this.frames.at(-1);
    if (last && step <= last.step) this.clear();
    const now = performance.now();
    if (last && this.arrived !== null) {
      const rate = (step - last.step) / Math.max(now - this.arrived, 1);
      this.rate = this.rate ? this.rate + 0.12 * (rate - this.rate) : rate;
      this.stride = step - last.step;
    }
    this.arrived = now;
    this.frames.push({ step, active, poses });
    if (this.frames.length > 40) this.frames.shift();
  }

  /** The two frames around the moment that is shown `elapsed` milliseconds after the last one, and how far it is between them. */
  advance(elapsed) {
    const { frames } = this;
    if (!frames.length) return null;
    const newest = frames.at(-1).step;
    const lag = BEHIND * (this.stride ?? 1);
    if (this.shown === null) this.shown = frames[0].step;
    const late = newest - this.shown - lag;
    const still = performance.now() - this.arrived > 400;  // paused or at the end: glide to the newest
    const pace = this.rate * (1 + Math.max(-0.9, Math.min(2, (0.5 * late) / Math.max(lag, 1))));
    this.shown = still ? newest - (newest - this.shown) * Math.exp(-elapsed / 60) : Math.min(newest, this.shown + pace * elapsed);
    if (newest - this.shown < 1e-3) this.shown = newest;
    if (this.shown < frames[0].step) this.shown = frames[0].step;
    while (frames.length > 2 && frames[1].step <= this.shown) frames.shift();
    const [a, b] = [frames[0], frames[1] ?? frames[0]];
    return { a, b, part: b === a ? 0 : Math.min(1, Math.max(0, (this.shown - a.step) / (b.step - a.step))) };
  }
}
