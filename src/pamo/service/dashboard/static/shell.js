// What every view has: the theme's button, and signing out.

const root = document.documentElement;
const THEMES = ["auto", "light", "dark"];

const button = document.getElementById("theme");

function show() {
  button.textContent = `Theme: ${root.dataset.theme ?? "auto"}`;
}

button.hidden = false;
show();
button.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
  if (next === "auto") delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    localStorage.setItem("pamo-theme", next);
  } catch {
    // It lasts as long as the page.
  }
  show();
});
