// The page: which run and target are chosen, and what of the rollouts is shown where.

import { AchievedChart } from "./achieved.js";
import { Connection, get, post, runPath } from "./api.js";
import { forgetColors } from "./axes.js";
import { Course } from "./course.js";
import { ExpressionField } from "./expression.js";
import { showPresets } from "./presets.js";
import { PlaneAchieved, PlaneChart } from "./plane.js";
import { hint, say, showCommand, showEnd, showFacts, showLive, showState } from "./readouts.js";
import { Film, compose, copy, download } from "./save.js";
import { Settings } from "./settings.js";
import { TargetChart } from "./target_chart.js";
import { startTheme } from "./theme.js";
import { viewOf } from "./views.js";

const $ = (id) => document.getElementById(id);
const INVITATION = "Draw here what the robot's future should look like";

class Studio {
  constructor() {
    this.status = "loading";  // starting, playing, paused, ended, idle
    this.past = [];
    this.generation = 0;
    this.expression = new ExpressionField($("expression"), $("behind"), $("problem"), (text) => this.typed(text));
    this.settings = new Settings(() => this.settingsChanged());
    this.course = new Course($("course"), { w1: $("w1-line"), played: $("played-line"), back: $("return-line") });
    this.connection = new Connection({
      open: (again) => this.connected(again),
      lost: () => this.lost(),
      message: (message) => this.received(message),
      frame: (buffer) => this.status !== "starting" && this.view?.frame(buffer),
    });
    this.listen();
    this.load();
  }

  listen() {
    $("run").addEventListener("change", () => this.choose($("run").value));
    $("play").addEventListener("click", () => this.play());
    $("reset").addEventListener("click", () => this.reset());
    $("speed").addEventListener("change", () => this.running && this.connection.send({ type: "speed", value: this.speed }));
    $("follow").addEventListener("click", () => this.follow());
    $("undo").addEventListener("click", () => this.undo());
    $("clear").addEventListener("click", () => this.clear());
    $("copy").addEventListener("click", () => this.copied($("command").textContent, "The command"));
    for (const button of $("tools").children) button.addEventListener("click", () => this.chooseTool(button.dataset.tool));
    for (const button of document.querySelectorAll("[data-save]")) button.addEventListener("click", () => this.save(button.dataset.save));
    for (const event of ["pointerenter", "focus"]) $("mixture-fact").addEventListener(event, () => this.target.setMixture(this.facts?.mixture?.heights ?? null));
    for (const event of ["pointerleave", "blur"]) $("mixture-fact").addEventListener(event, () => this.target.setMixture(null));
    addEventListener("pointerdown", ({ target }) => { if (!$("save").contains(target)) $("save").open = false; });
    addEventListener("keydown", (event) => this.key(event));
    startTheme($("theme"), () => {
      forgetColors();
      [this.target, this.achieved].forEach((chart) => chart?.surface.draw());
      this.course.recolor();
      this.view?.recolor();
    });
  }

  get running() {
    return this.status === "playing" || this.status === "paused";
  }

  get speed() {
    return Number($("speed").value);
  }

  // -- which run, which feature ------------------------------------------------------------------------------------

  async load() {
    try {
      const { runs, limits } = await get("/api/runs");
      this.runs = runs;
      this.settings.limits = limits;
      $("run").replaceChildren(...runs.map(({ name }) => new Option(name)));
      const wished = new URLSearchParams(location.hash.slice(1));
      const run = runs.find(({ name }) => name === wished.get("run")) ?? runs[0];
      await this.choose(run.name, wished.get("run") === run.name ? wished.get("target") : null);
    } catch (reason) {
      say(reason.message, true);
    }
  }

  async choose(name, expression = null) {
    this.stop();
    this.run = this.runs.find((run) => run.name === name);
    $("run").value = name;
    $("title").textContent = this.run.title;
    this.settings.show(this.run);
    await this.showFeature(expression ?? this.run.default.expression);
  }

  /** The charts of the feature that is chosen, the robot, and a first target. */
  async showFeature(expression) {
    const { run } = this;
    const generation = ++this.generation;
    this.facts = null;
    this.past = [];
    const feature = this.settings.feature;
    try {
      const geometry = run.view === "geometry" && this.viewed !== run.name ? get(runPath(run.name, "geometry")) : null;
      const chart = await get(`${runPath(run.name, "chart")}?feature=${encodeURIComponent(feature)}`);
      if (generation !== this.generation) return;
      this.chart = chart;
      this.showCharts();
      showPresets($("presets"), chart, (chosen) => this.typed(chosen));
      if (expression) this.typed(expression);
      else if (this.drawable) hint(INVITATION);
      if (this.viewed !== run.name || run.view === "traces") await this.showRobot(await geometry, generation);
      $("play").disabled = false;
    } catch (reason) {
      if (generation === this.generation) say(reason.message, true);
    }
  }

  showCharts() {
    const fresh = (id) => {
      const canvas = $(id).cloneNode();
      $(id).replaceWith(canvas);
      return canvas;
    };
    [this.target, this.achieved].forEach((chart) => chart?.surface.observer.disconnect());
    const plane = this.chart.dims === 2;
    this.target = new (plane ? PlaneChart : TargetChart)(fresh("target"), (heights, done) => this.drawn(heights, done));
    this.achieved = new (plane ? PlaneAchieved : AchievedChart)(fresh("achieved"));
    this.drawable = this.chart.dims <= 2;
    if (plane && $("tools").querySelector("[data-tool=bars]").ariaChecked === "true") this.chooseTool("curve");
    if (this.drawable) [this.target, this.achieved].forEach((chart) => chart.show(this.chart));
    this.target.tool = $("tools").querySelector("[aria-checked=true]").dataset.tool;
    this.course.show(this.chart, this.run.horizon, this.run.dt ?? 0.05);
    $("tools").querySelector("[data-tool=curve]").textContent = plane ? "Brush" : "Curve";
    $("tools").querySelector("[data-tool=bars]").hidden = plane;
    hint(this.drawable ? "" : `${this.chart.dims} dimensions: type an expression below`);
  }

  async showRobot(geometry, generation) {
    this.view?.dispose();
    this.view = null;
    const view = await viewOf(this.run, $("view"), this.chart, geometry);
    if (generation !== this.generation) return view.dispose();
    this.view = view;
    this.viewed = this.run.name;
    view.after = () => this.film?.draw();
    $("follow").hidden = this.run.view !== "geometry";
  }

  // -- the target --------------------------------------------------------------------------------------------------

  drawn(heights, done) {
    hint("");
    if (!done) return;
    if (heights.flat().some((height) => height > 0)) this.ask({ heights });
    else this.clear();
  }

  typed(text) {
    this.expression.set(text);
    if (text.trim()) this.ask({ expression: text });
  }

  /** What the server makes of a target; the latest one counts. */
  async ask(wish) {
    this.asked?.abort();
    const asked = this.asked = new AbortController();
    const { run, feature, ...rest } = this.settings.choices();
    this.pending = (async () => {
      try {
        const facts = await post("/api/target", { run, feature, ...wish, ...rest }, asked.signal);
        const overtaken = wish.expression !== undefined && this.expression.text !== wish.expression;
        if (asked === this.asked && !overtaken) this.accept(facts);
      } catch (reason) {
        if (reason.name === "AbortError" || asked !== this.asked) return;
        this.refuse(reason);
      }
    })();
    await this.pending;
  }

  accept(facts) {
    const again = this.facts?.expression === facts.expression;
    if (this.facts && !again) this.past.push(this.facts.expression);
    $("undo").disabled = !this.past.length;
    this.facts = facts;
    this.expression.set(facts.expression);
    if (this.drawable) {
      if (!this.target.stroke) this.target.set(facts.heights);
      if (!this.running && this.status !== "ended") this.achieved.setTarget(facts.heights);
    }
    showFacts(facts);
    for (const chip of $("presets").querySelectorAll("button")) chip.setAttribute("aria-pressed", chip.value === facts.expression);
    history.replaceState(null, "", `#${new URLSearchParams({ run: this.run.name, target: facts.expression })}`);
    if (this.running && facts.expression !== this.shown) {
      this.connection.send({ type: "target", expression: facts.expression });
    }
  }

  refuse(reason) {
    if (this.expression.text) this.expression.mistake(reason.message, reason.at);
    else say(reason.message, true);
  }

  undo() {
    if (!this.past.length) return;
    const last = this.past.pop();
    this.facts = null;
    $("undo").disabled = !this.past.length;
    this.typed(last);
  }

  clear() {
    this.asked?.abort();
    this.asked = null;
    this.expression.set("");
    if (this.facts) this.past.push(this.facts.expression);
    $("undo").disabled = !this.past.length;
    this.facts = null;
    showFacts(null);
    for (const chip of $("presets").querySelectorAll("button")) chip.setAttribute("aria-pressed", false);
    if (this.drawable) this.target.set(null);
    if (this.drawable && this.status === "idle") this.achieved.setTarget(null);
    hint(INVITATION);
  }

  chooseTool(tool) {
    for (const button of $("tools").children) button.setAttribute("aria-checked", button.dataset.tool === tool);
    if (!this.target) return;
    this.target.tool = tool;
    this.target.surface.draw();
  }

  // -- rollouts ----------------------------------------------------------------------------------------------------

  async play() {
    if (this.running) {
      this.connection.send({ type: this.status === "playing" ? "pause" : "play" });
      return this.enter(this.status === "playing" ? "paused" : "playing");
    }
    return this.start();
  }

  async start() {
    await this.pending;
    if (!this.facts) return this.clear();
    const { expression } = this.facts;
    if (!this.connection.send({ type: "start", ...this.settings.choices(), expression, speed: this.speed })) return say("Not connected: is himatch studio still running?", true);
    this.enter("starting");
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.status === "starting" && say(this.settings.choices().conditioning === "rehearsed" ? "Rehearsing this target in the simulator…" : "Preparing…"), 400);
  }

  reset() {
    if (this.running || this.status === "ended") {
      this.connection.send({ type: "pause" });
      this.connection.send({ type: "reset" });
      this.resetting = true;
      this.enter("starting");
    }
  }

  stop() {
    if (this.running || this.status === "starting") this.connection.send({ type: "stop" });
    this.enter("idle");
    if (this.course.chart) this.course.begin(this.run.horizon, this.run.dt ?? 0.05);
    this.achieved?.fill(null, 0);
    this.show(null);
  }

  settingsChanged(featureToo = false) {
    if (featureToo) {
      this.stop();
      return void this.showFeature(this.settings.feature === this.run.default.feature ? this.run.default.expression : "");
    }
    const running = this.status === "playing";
    if (this.facts) this.ask({ expression: this.facts.expression });
    if (running) this.start();
    else if (this.status === "paused" || this.status === "ended") this.stop();
  }

  enter(status) {
    this.status = status;
    const playing = status === "playing";
    $("play").dataset.state = playing ? "playing" : "";
    $("play").lastElementChild.textContent = { playing: "Pause", paused: "Resume", ended: "Run again", starting: "Run" }[status] ?? "Run";
    $("play").disabled = status === "starting" || !this.view;
    $("reset").disabled = !this.running && status !== "ended";
    document.body.dataset.status = status;
  }

  // -- what the server says ----------------------------------------------------------------------------------------

  received(message) {
    const { type } = message;
    if (type === "ready") this.ready(message);
    else if (type === "state" && this.status !== "starting") this.show(message);
    else if (type === "target") this.retargeted(message);
    else if (type === "end") this.end(message.result);
    else if (type === "error") this.failed(message);
  }

  ready(message) {
    this.info = message;
    this.shown = message.expression;
    say("");
    this.view?.begin(message);
    this.course.begin(message.steps, message.dt ?? 0.05);
    if (this.drawable) {
      this.achieved.setTarget(message.heights);
      this.achieved.fill(null, 0);
    }
    showCommand(message.command);
    this.enter(this.resetting ? "paused" : "playing");
    this.resetting = false;
    if (this.filming) this.beginFilm();
  }

  retargeted({ expression, heights, since, steps }) {
    this.shown = expression;
    this.course.last(steps);
    this.course.change(since);
    if (this.drawable) {
      this.achieved.setTarget(heights);
      this.achieved.fill(null, 0);
    }
  }

  show(state) {
    const back = showState(state, this.info?.dt ?? 0.05);
    showLive(state, { chart: this.chart, robots: this.info?.robots ?? 0, meters: this.view?.where });
    if (!state) return;
    if (this.drawable && state.achieved) this.achieved.fill(state.achieved, state.played);
    this.course.add({ ...state, back });
  }

  end(result) {
    this.enter("ended");
    showEnd(result);
    this.film?.draw();
    this.film?.stop();
    this.film = null;
  }

  failed({ error, at }) {
    if (at) this.expression.mistake(error, at);
    else say(error, true);
    if (this.status === "starting") this.enter("idle");
  }

  connected(again) {
    $("link").dataset.state = "open";
    $("link").lastElementChild.textContent = "connected";
    if (!again) return;
    if (this.interrupted) {
      say("Connected again; the run has begun anew.");
      this.start();
    } else say("Connected again.");
    clearTimeout(this.patience);
    this.patience = setTimeout(() => say(""), 3000);
    if (!this.runs) this.load();
  }

  lost() {
    $("link").dataset.state = "lost";
    $("link").lastElementChild.textContent = "not connected";
    say("Connection lost. Trying again…", true);
    this.interrupted = this.status === "playing" || this.status === "starting" || (this.interrupted && this.status === "idle");
    this.enter("idle");
  }

  // -- words over the robot, keys, files ---------------------------------------------------------------------------

  follow() {
    const on = $("follow").getAttribute("aria-pressed") !== "true";
    $("follow").setAttribute("aria-pressed", on);
    if (this.view) this.view.following = on;
  }

  key(event) {
    if (event.target.matches("input, textarea, select, [role=slider]") && !(event.key === "z" && event.target === $("target"))) return;
    if (event.key === " " && event.target.matches("button, summary")) return;
    const acts = { " ": () => this.play(), r: () => this.reset(), f: () => this.follow() };
    if ((event.ctrlKey || event.metaKey) && event.key === "z") acts.z = () => this.undo();
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  async copied(text, what) {
    say((await copy(text)) ? `${what} is copied.` : "The browser does not allow copying.");
    setTimeout(() => say(""), 1800);
  }

  pictured() {
    const state = this.course.states.at(-1);
    return {
      picture: this.view?.picture(),
      achieved: $("achieved"),
      title: `${this.run.title}, ${this.info?.conditioning ?? ""}`,
      w1: state ? `W1 ${$("w1").textContent}` : "",
      words: state ? `${$("clock").textContent}, ${$("played").textContent} played` : "",
    };
  }

  save(what) {
    $("save").open = false;
    if (what === "expression") this.copied(this.facts?.expression ?? "", "The target");
    else if (what === "command") this.copied($("command").textContent, "The command");
    else if (what === "picture") compose(document.createElement("canvas"), this.pictured()).toBlob((blob) => download(blob, `${this.run.name}.png`));
    else if (!Film.possible) say("This browser cannot record films; himatch match --video does.", true);
    else if (this.status === "playing") this.beginFilm();
    else {
      this.filming = true;
      say("The next run will be filmed.");
      setTimeout(() => say(""), 1800);
    }
  }

  beginFilm() {
    this.filming = false;
    this.film ??= new Film(() => this.pictured(), this.run.name);
  }
}

new Studio();
