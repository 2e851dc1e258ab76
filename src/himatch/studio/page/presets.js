// Targets to begin with: chips for the first few, lists for the others.

const CHIPS = 4;

/** `chosen(expression)` when one is picked. */
export function showPresets(container, { presets, episodes }, chosen) {
  const chips = presets.slice(0, CHIPS).map(({ label, expression }) => {
    const chip = Object.assign(document.createElement("button"), { type: "button", textContent: label, title: expression, value: expression });
    chip.addEventListener("click", () => chosen(expression));
    return chip;
  });
  container.replaceChildren(...chips, ...[list("More targets", presets.slice(CHIPS), chosen), list("Held-out episodes", episodes, chosen)].filter(Boolean));
}

function list(title, entries, chosen) {
  if (!entries.length) return null;
  const select = document.createElement("select");
  select.setAttribute("aria-label", title);
  select.append(new Option(title, ""), ...entries.map(({ label, expression }) => new Option(label, expression)));
  select.addEventListener("change", () => {
    if (select.value) chosen(select.value);
    select.selectedIndex = 0;
  });
  return select;
}
