// What the theme leaves out for those who do not see the page or have no mouse: how deep its captions are, and a way to
// scroll by the keyboard what is wider than the window.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) {
    caption.setAttribute("aria-level", "2");
  }
  const sizes = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const wide of document.querySelectorAll("pre, .table-wrapper, .math-wrapper")) sizes.observe(wide);
});
