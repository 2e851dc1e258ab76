// Canvases that keep their size, axes with round ticks, and the colors of the page.

const NAMES = ["card", "ink", "soft", "rule", "data", "target", "rollouts", "paler", "ground", "checker"];
let colors = null;

/** The page's colors as the browser resolves them, light or dark. */
export function palette() {
  if (!colors) {
    const style = getComputedStyle(document.documentElement);
    colors = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return colors;
}

export const forgetColors = () => { colors = null; };

/** The same color, `alpha` of it. */
export const faded = (color, alpha) => `color-mix(in srgb, ${color} ${Math.round(alpha * 100)}%, transparent)`;

/** Round numbers within a range, about `count` of them. */
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

export const FONT = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif';

/** A canvas that is drawn again when its size or the colors change. `draw(context, width, height)` in CSS pixels. */
export class Surface {
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.paint = draw;
    this.asked = false;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = Math.min(devicePixelRatio || 1, 3);
    this.width = clientWidth;
    this.height = clientHeight;
    this.ratio = ratio;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.drawNow();
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.asked = false;
    if (!this.width || !this.height) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = FONT;
    this.paint(context, this.width, this.height);
  }
}

/** Maps values to pixels within margins. */
export class Frame {
  constructor(width, height, { left = 40, right = 8, top = 8, bottom = 34 }, [x0, x1], [y0, y1]) {
    Object.assign(this, { left, top, right: width - right, bottom: height - bottom, x0, x1, y0, y1 });
  }

  x(value) { return this.left + ((value - this.x0) / (this.x1 - this.x0)) * (this.right - this.left); }
  y(value) { return this.bottom - ((value - this.y0) / (this.y1 - this.y0)) * (this.bottom - this.top); }
  valueX(pixel) { return this.x0 + ((pixel - this.left) / (this.right - this.left)) * (this.x1 - this.x0); }
  valueY(pixel) { return this.y0 + ((this.bottom - pixel) / (this.bottom - this.top)) * (this.y1 - this.y0); }

  /** The axis below, its name at its right end under the numbers. */
  axisX(context, label, write = String) {
    const { ink, soft, rule } = palette();
    context.strokeStyle = rule;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(this.left, this.bottom + 0.5);
    context.lineTo(this.right, this.bottom + 0.5);
    const numbers = ticks(this.x0, this.x1, (this.right - this.left) / 70);
    for (const value of numbers) {
      const x = Math.round(this.x(value)) + 0.5;
      context.moveTo(x, this.bottom);
      context.lineTo(x, this.bottom + 4);
    }
    context.stroke();
    context.fillStyle = soft;
    context.textBaseline = "top";
    for (const value of numbers) {
      context.textAlign = this.x(value) > this.right - 8 ? "right" : "center";
      context.fillText(write(value).replace("-", "−"), this.x(value), this.bottom + 6);
    }
    context.fillStyle = ink;
    context.textAlign = "center";
    context.fillText(label, (this.left + this.right) / 2, this.bottom + 20);
  }

  /** Faint lines across, their numbers to the left, the axis's name above them. */
  axisY(context, label, write = String, count = 4) {
    const { soft, rule } = palette();
    context.strokeStyle = faded(rule, 0.8);
    context.lineWidth = 1;
    context.fillStyle = soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of ticks(this.y0, this.y1, count)) {
      const y = Math.round(this.y(value)) + 0.5;
      if (y < this.top - 1) continue;
      if (value !== this.y0) {
        context.beginPath();
        context.moveTo(this.left, y);
        context.lineTo(this.right, y);
        context.stroke();
      }
      context.fillText(write(value).replace("-", "−"), this.left - 6, y);
    }
    context.textAlign = "left";
    context.textBaseline = "bottom";
    context.fillText(label, Math.max(0, this.left - 42), this.top - 4);
  }
}

export const percent = (share) => `${Number((share * 100).toPrecision(3))}\u202f%`;
