// Light or dark: as the system, until the button says otherwise.

const dark = matchMedia("(prefers-color-scheme: dark)");

function kept(value) {
  try {
    if (value) localStorage.setItem("himatch-theme", value);
    return localStorage.getItem("himatch-theme");
  } catch {  // a browser that keeps nothing
    return null;
  }
}

/** `changed()` whenever the colors are others. */
export function startTheme(button, changed) {
  const root = document.documentElement;
  if (kept()) root.dataset.theme = kept();
  button.addEventListener("click", () => {
    const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
    root.dataset.theme = kept(now === "dark" ? "light" : "dark") ?? (now === "dark" ? "light" : "dark");
    changed();
  });
  dark.addEventListener("change", changed);
}
