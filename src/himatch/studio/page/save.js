// Pictures and films of what the page shows: the robot beside the chart that fills up.

import { palette } from "./axes.js";

const [WIDTH, HEIGHT, SIDE] = [1280, 600, 500];

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Put `picture` into a box, as large as possible without gaps. */
function cover(context, picture, x, y, width, height) {
  const scale = Math.max(width / picture.width, height / picture.height);
  const [w, h] = [width / scale, height / scale];
  context.drawImage(picture, (picture.width - w) / 2, (picture.height - h) / 2, w, h, x, y, width, height);
}

/** One picture of it all. `shown` has picture (a canvas), achieved (a canvas), title, w1, words. */
export function compose(canvas, shown) {
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const context = canvas.getContext("2d");
  const { card, ink, soft, rollouts, ground } = palette();
  context.fillStyle = card;
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = ground;
  context.fillRect(0, 0, WIDTH - SIDE, HEIGHT);
  if (shown.picture?.width) cover(context, shown.picture, 0, 0, WIDTH - SIDE, HEIGHT);
  const left = WIDTH - SIDE + 28;
  context.textBaseline = "alphabetic";
  context.fillStyle = soft;
  context.font = "16px system-ui, sans-serif";
  context.fillText(shown.title, left, 46, SIDE - 56);
  context.fillStyle = rollouts;
  context.font = "650 44px system-ui, sans-serif";
  context.fillText(shown.w1, left, 104);
  context.fillStyle = ink;
  context.font = "16px system-ui, sans-serif";
  context.fillText(shown.words, left, 134, SIDE - 56);
  const { width, height } = shown.achieved;
  const scale = Math.min((SIDE - 48) / width, (HEIGHT - 180) / height);
  context.drawImage(shown.achieved, left - 4, 166, width * scale, height * scale);
  return canvas;
}

const KINDS = ["video/mp4;codecs=avc1", "video/webm;codecs=vp9", "video/webm"];

/** A film, picture by picture, until it is stopped. */
export class Film {
  static get possible() {
    return typeof MediaRecorder === "function" && KINDS.some((kind) => MediaRecorder.isTypeSupported(kind));
  }

  constructor(shown, name) {
    Object.assign(this, { shown, name, canvas: document.createElement("canvas"), parts: [] });
    this.draw();
    this.kind = KINDS.find((kind) => MediaRecorder.isTypeSupported(kind));
    this.recorder = new MediaRecorder(this.canvas.captureStream(30), { mimeType: this.kind, videoBitsPerSecond: 5_000_000 });
    this.recorder.ondataavailable = ({ data }) => this.parts.push(data);
    this.recorder.start(1000);
  }

  draw() {
    compose(this.canvas, this.shown());
  }

  /** Stop and hand it over. */
  stop() {
    this.recorder.onstop = () => download(new Blob(this.parts, { type: this.kind }), `${this.name}.${this.kind.includes("mp4") ? "mp4" : "webm"}`);
    setTimeout(() => this.recorder.stop(), 1200);  // the last picture stays for a moment
  }
}

/** Whether the text is in the clipboard now. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {  // not allowed, or no secure origin
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
