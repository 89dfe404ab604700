// Finding a user, by the beginning of their id.

import { get, start, trouble } from "./api.js";
import { base, el, fill, name, userLink } from "./dom.js";
import { number } from "./format.js";

const LIMIT = 50;

/** The two objectives that weigh most, as far as any does. */
function cares(weights) {
  const most = Object.entries(weights ?? {}).filter(([, weight]) => weight > 0).sort((a, b) => b[1] - a[1]).slice(0, 2);
  return most.length ? most.flatMap(([objective], place) => (place ? [", then ", name(objective)] : [name(objective)])) : ["–"];
}

start(async (place, signal) => {
  const field = el("input", { type: "search", id: "find", placeholder: "How the id begins", maxlength: 256, autocomplete: "off" });
  const form = el(
    "form",
    { class: "spread" },
    el("div", { class: "field grow" }, el("label", { for: "find" }, "User"), field),
    el("button", { type: "submit", class: "main" }, "Open"),
  );
  const said = el("p", { class: "soft small", role: "status" });
  const rows = el("tbody", {});
  fill(
    place,
    el(
      "section",
      { class: "card" },
      form,
      el("p", { class: "soft small" }, "Listed are users who gave feedback, those who gave most first. Open takes any id, also one that is new."),
      el(
        "div",
        { class: "table", role: "region", tabindex: "0", "aria-label": "Users" },
        el(
          "table",
          {},
          el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "User"), el("th", { scope: "col", class: "number" }, "Feedbacks"), el("th", { scope: "col" }, "Cares most about"))),
          rows,
        ),
      ),
      said,
    ),
  );
  let turn = 0;
  const find = async () => {
    turn += 1;
    const mine = turn;
    const found = await get("/v1/users", { query: field.value, limit: LIMIT }, signal);
    if (mine !== turn) return;
    fill(
      rows,
      ...found.users.map((one) =>
        el("tr", {}, el("th", { scope: "row" }, userLink(one.user)), el("td", { class: "number" }, number(one.rounds)), el("td", {}, ...cares(one.weights))),
      ),
    );
    if (!found.users.length) said.textContent = field.value ? "Nobody whose id begins so has given feedback." : "Nobody has given feedback yet.";
    else said.textContent = found.more ? `The first ${LIMIT} are shown: type more of the id to find others.` : `${number(found.users.length)} found.`;
  };
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => find().then(() => trouble(null), trouble), 150);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const id = field.value;
    if (id && id !== "." && id !== "..") location.assign(`${base}/users/${encodeURIComponent(id)}`);
    else field.focus();
  });
  await find();
});
