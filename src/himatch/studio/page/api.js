// What the server answers: JSON over HTTP, and one socket a page for the rollouts.

/** A mistake that the server names; `at` are the characters of the expression it stands at, or null. */
export class Mistake extends Error {
  constructor({ error, at }, status) {
    super(error);
    this.at = at ?? null;
    this.status = status;
  }
}

async function answer(response) {
  let body;
  try {
    body = await response.json();
  } catch {
    throw new Mistake({ error: `The server answered with ${response.status}.` }, response.status);
  }
  if (!response.ok) throw new Mistake(body, response.status);
  return body;
}

export const get = async (path) => answer(await fetch(path));

export const post = async (path, body, signal) => answer(await fetch(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
}));

export const runPath = (name, what) => `/api/runs/${encodeURIComponent(name)}/${what}`;

const WAITS = [300, 700, 1500, 3000];  // milliseconds before the next attempt to connect

/** The socket of a view. It connects again by itself; `on.open(again)`, `on.lost()`, `on.message(json)`, `on.frame(floats)`. */
export class Connection {
  constructor(on) {
    this.on = on;
    this.attempts = 0;
    this.opened = false;
    this.connect();
    addEventListener("online", () => this.socket.readyState > WebSocket.OPEN && this.connect());
  }

  get open() {
    return this.socket.readyState === WebSocket.OPEN;
  }

  connect() {
    clearTimeout(this.timer);
    const url = new URL("/ws/view", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = this.socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const again = this.opened;
      this.opened = true;
      this.attempts = 0;
      this.on.open(again);
    };
    socket.onmessage = ({ data }) => (typeof data === "string" ? this.on.message(JSON.parse(data)) : this.on.frame(data));
    socket.onclose = () => {
      if (socket !== this.socket) return;
      this.on.lost();
      this.timer = setTimeout(() => this.connect(), WAITS[Math.min(this.attempts++, WAITS.length - 1)]);
    };
  }

  /** Whether it could be sent. */
  send(message) {
    if (!this.open) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }
}
