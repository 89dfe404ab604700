// Not a module, so that the colours are right before anything is drawn.
(() => {
  try {
    const theme = localStorage.getItem("pamo-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // No storage: as the system has it.
  }
})();
