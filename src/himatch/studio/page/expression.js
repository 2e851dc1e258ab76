// The field for expressions; a mistake is underlined where it stands.

export class ExpressionField {
  /** `changed(text)`: a moment after the last key, at once on Enter. */
  constructor(field, behind, problem, changed) {
    Object.assign(this, { field, behind, problem, changed });
    field.addEventListener("input", () => {
      this.clearMistake();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.changed(this.text), 450);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      clearTimeout(this.timer);
      this.changed(this.text);
    });
    field.addEventListener("scroll", () => { behind.scrollTop = field.scrollTop; });
  }

  get text() {
    return this.field.value;
  }

  set(text) {
    clearTimeout(this.timer);
    this.clearMistake();
    if (this.field.value !== text) this.field.value = text;
  }

  mistake(words, at) {
    this.problem.textContent = this.problem.title = words;
    this.field.parentElement.classList.add("wrong");
    this.field.setAttribute("aria-invalid", "true");
    this.behind.replaceChildren();
    if (!at) return;
    const text = this.text;
    const from = Math.min(at[0], text.length);
    const word = text.slice(from).match(/^[+-]?[\w.]*/)[0].length;  // all of what begins there
    const to = Math.max(at[1], from + Math.max(word, 1));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(from, to) || "\u00a0\u00a0";  // past the end: there is something missing
    this.behind.append(text.slice(0, from), mark, text.slice(to));
    this.behind.scrollTop = this.field.scrollTop;
  }

  clearMistake() {
    this.problem.textContent = this.problem.title = "";
    this.field.parentElement.classList.remove("wrong");
    this.field.removeAttribute("aria-invalid");
    this.behind.replaceChildren();
  }
}
