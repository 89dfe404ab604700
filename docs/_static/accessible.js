// What the theme leaves out for those who do not see the page or have no mouse: how deep its captions are, and a way to
// scroll long lines of code by the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) {
    caption.setAttribute("aria-level", "2");
  }
  for (const code of document.querySelectorAll(".highlight pre")) {
    code.tabIndex = 0;
  }
});
