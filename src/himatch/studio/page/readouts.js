// Numbers and words of the page: what is known of a target beforehand, and how the rollouts are going.

const $ = (id) => document.getElementById(id);
const small = (words) => Object.assign(document.createElement("small"), { textContent: words });
const minus = (words) => words.replace("-", "−");
const share = (value) => (value == null ? "–" : `${(100 * value).toFixed(value > 0.995 || value === 0 ? 0 : 1)} %`);
const mean = (values) => (values?.length ? values.reduce((sum, one) => sum + one, 0) / values.length : null);

function figures(value, digits = 3) {
  if (value == null) return "–";
  return minus(Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(digits));
}

/** Of a target, before anything is rolled out; null: there is none. */
export function showFacts(facts) {
  const { covered, mixture, promise, notes = [], command = "" } = facts ?? {};
  $("covered").textContent = share(covered);
  $("mixture").textContent = mixture ? `W1 ${figures(mixture.w1)}` : "–";
  $("promise").replaceChildren();
  if (promise) $("promise").append(`W1 ${figures(promise.w1 ?? promise.score)}`, Object.assign(small(` ${figures(promise.low, 2)} to ${figures(promise.high, 2)}`), { className: "range" }));
  else $("promise").append(facts ? small("not rehearsed") : "–");
  $("promise").parentElement.title = promise?.text ?? "What rehearsed rollouts of this target reached; it has not been rehearsed";
  $("notes").textContent = notes.join(" ");
  showCommand(command);
}

export function showCommand(command) {
  $("command").textContent = $("command").title = command ?? "The target was changed on the way: no single command repeats this.";
}

/** W1, or how far a return or a goal is missed. */
function showDistance(value, name, when) {
  $("w1").textContent = figures(value);
  $("w1").dataset.value = value ?? "";
  $("w1-name").textContent = name;
  $("w1-words").textContent = when;
}

/** How rollouts are going; null: there are none. Returns the mean of the returns. */
export function showState(state, dt = 0.05) {
  const missed = state && state.w1 === null && state.missed != null;
  showDistance(state?.w1 ?? state?.missed ?? null, missed ? "Off by" : "W1", "so far");
  $("w1").parentElement.toggleAttribute("data-final", false);
  $("played").textContent = share(state?.played);
  const back = mean(state?.returns);
  $("return").textContent = figures(back);
  const steps = state?.steps ?? 1;
  $("progress").max = steps;
  $("progress").value = state?.step ?? 0;
  $("clock").textContent = state ? `${(state.step * dt).toFixed(1)} of ${(steps * dt).toFixed(0)} s` : "0.0 s";
  return back;
}

/** The result; after changes of the target that of the last one. */
export function showEnd(result) {
  const w1 = result.w1_since ?? result.w1;
  showDistance(w1 ?? result.error, w1 == null ? "Off by" : "W1", "at the end");
  $("w1").parentElement.toggleAttribute("data-final", true);
  $("played").textContent = share(result.played);
  if (result.command !== undefined) showCommand(result.command);
}

/** Over the robot: what it does now, how far it has come, how many are still up. */
export function showLive(state, { chart, robots, meters }) {
  $("live").replaceChildren();
  $("where").textContent = "";
  if (!state) return;
  const value = state.values?.[0]?.[0];
  if (value != null) {
    const unit = chart.unit ? `\u202f${chart.unit}` : "";
    $("live").append(minus(`${value.toFixed(Math.abs(value) < 100 ? 1 : 0)}${unit}`), small(chart.labels[0]));
  }
  const all = state.robots_active === robots || state.step >= state.steps;
  const words = robots < 2 ? [] : [all ? `${robots} robots` : `${state.robots_active} of ${robots} robots still up`];
  if (meters != null) words.unshift(minus(`${Math.round(meters) || 0} m`));
  $("where").textContent = words.join(" · ");
}

/** A line over the robot; empty words take it away. */
export function say(words, wrong = false) {
  if (words) $("banner").textContent = words;
  $("banner").className = `banner${words ? " shown" : ""}${wrong ? " wrong" : ""}`;
}

/** A line over the chart that one draws on. */
export function hint(words) {
  if (words) $("hint").textContent = words;
  $("hint").classList.toggle("shown", Boolean(words));
}
