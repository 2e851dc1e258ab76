// Feature, conditioning, robots, seed, temperature.

const field = (id) => document.getElementById(id);
const NAMES = ["feature", "conditioning", "robots", "seed", "temperature"];

export class Settings {
  /** `changed(featureToo)` after every choice that is valid. */
  constructor(changed) {
    field("settings").addEventListener("submit", (event) => event.preventDefault());
    for (const name of NAMES) field(name).addEventListener("change", () => this.valid(field(name)) && changed(name === "feature"));
  }

  /** What a run offers, and its defaults. */
  show(run) {
    this.run = run;
    const { default: first } = run;
    const limits = this.limits ?? {};
    field("feature").replaceChildren(...run.features.map(({ name }) => new Option(name)));
    field("conditioning").replaceChildren(...run.conditionings.map((name) => new Option(name)));
    field("conditioning").disabled = run.conditionings.length < 2;
    field("feature").disabled = run.features.length < 2;
    field("feature").value = first.feature;
    field("conditioning").value = first.conditioning;
    field("robots").max = limits.robots ?? 32;
    field("robots").value = first.robots ?? 4;
    [field("seed").min, field("seed").max] = limits.seed ?? [0, 1_000_000];
    field("seed").value = first.seed ?? 0;
    [field("temperature").min, field("temperature").max] = limits.temperature ?? [0, 2];
    field("temperature").disabled = !run.stochastic;
    field("temperature").value = run.stochastic ? first.temperature : "";
    field("temperature").placeholder = run.stochastic ? "" : "none";
  }

  get feature() {
    return field("feature").value;
  }

  /** Numbers are brought into their range. */
  valid(input) {
    if (input.type !== "number") return true;
    const value = Number(input.value);
    if (input.value === "" || !Number.isFinite(value)) {
      input.value = this.run.default[input.id] ?? "";
      return true;
    }
    const whole = input.id === "temperature" ? value : Math.round(value);
    input.value = Math.min(Number(input.max), Math.max(Number(input.min), whole));
    return true;
  }

  /** As messages have them. */
  choices() {
    const chosen = {
      run: this.run.name, feature: this.feature, conditioning: field("conditioning").value,
      robots: Number(field("robots").value), seed: Number(field("seed").value),
    };
    if (this.run.stochastic) chosen.temperature = Number(field("temperature").value);
    return chosen;
  }
}
