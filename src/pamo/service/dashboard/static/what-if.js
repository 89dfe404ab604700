// What if somebody weighed the objectives like this?

import { get, post, start, trouble } from "./api.js";
import { BarChart } from "./charts.js";
import { armName, el, fill } from "./dom.js";
import { fixed, number, percent } from "./format.js";

const SHOWN = 15;
const STEPS = 100;

start(async (place, signal) => {
  const { objectives } = await get("/v1/objectives", {}, signal);
  const sliders = objectives.map((one, number) => slider(one, number));
  const controls = el(
    "section",
    { class: "card third sticky" },
    el("h2", {}, "Weights"),
    el("p", { class: "soft small" }, "How much each objective counts; only the proportions matter. More of an objective always means more of what is good: a weight on a price means wanting it low."),
    sliders.map((one) => one.node),
    el(
      "div",
      { class: "choices" },
      el("button", { type: "button", onclick: level }, "All the same"),
    ),
  );
  const result = el("section", { class: "card two-thirds" });
  fill(place, el("div", { class: "grid" }, controls, result));
  const chart = new BarChart(result, {
    title: "The best arms for these weights",
    note: "and what each objective adds, by what is known; nothing is decided or recorded",
    empty: "No arm has had feedback in every objective yet.",
  });
  const rows = el("tbody", {});
  const said = el("p", { class: "soft small", role: "status" });
  const table = el(
    "div",
    { class: "table", role: "region", tabindex: "0", "aria-label": "What the values are made of" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "Arm"),
          el("th", { scope: "col", class: "number" }, "Value"),
          objectives.map((one) => el("th", { scope: "col", class: "number wide" }, el("bdi", {}, one.name))),
          el("th", { scope: "col", class: "number wide" }, "Pulls"),
        ),
      ),
      rows,
    ),
  );
  result.append(el("h3", {}, "What each objective adds"), table, said);

  let asked = 0;
  let answered = 0;
  let timer = 0;
  const rank = async () => {
    const preference = Object.fromEntries(objectives.map((one, place) => [one.name, sliders[place].value()]));
    const total = Object.values(preference).reduce((sum, one) => sum + one, 0);
    for (const one of sliders) one.show(total ? one.value() / total : 1 / objectives.length);
    asked += 1;
    const mine = asked;
    const used = total ? preference : Object.fromEntries(objectives.map((one) => [one.name, 1]));
    const { arms, untried } = await post(`/v1/rankings?limit=${SHOWN}`, { preference: used }, { signal });
    if (mine < answered) return;
    answered = mine;
    chart.update({
      label: "Arm",
      format: (value) => fixed(value, 3),
      interval: "holds the value with 95 %",
      domain: [0, Math.max(1e-9, ...arms.map((one) => one.value.high))],
      parts: objectives.map((one, place) => ({ name: one.name, colour: (place % 8) + 1 })),
      bars: arms.slice(0, 8).map((one, place) => ({ name: `${place + 1}. ${one.name}`, value: one.value.mean, low: one.value.low, high: one.value.high, parts: one.values })),
    });
    fill(
      rows,
      ...arms.map((one, place) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, el("span", { class: "place" }, `${place + 1}.`), " ", armName(one.arm, one.name)),
          el("td", { class: "number" }, fixed(one.value.mean, 3)),
          objectives.map((objective) => el("td", { class: "number wide" }, fixed(one.values[objective.name], 3))),
          el("td", { class: "number wide" }, number(one.pulls)),
        ),
      ),
    );
    said.textContent = untried ? `${number(untried)} more ${untried === 1 ? "arm has" : "arms have"} not been tried in every objective, and ${untried === 1 ? "is" : "are"} left out.` : "";
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => rank().then(() => trouble(null), trouble), 60);
  };
  function level() {
    for (const one of sliders) one.set(STEPS / 2);
    soon();
  }
  for (const one of sliders) one.input.addEventListener("input", soon);
  await rank();
});

function slider(objective, place) {
  const id = `weight-${place}`;
  const share = el("output", { for: id, class: "share" });
  const input = el("input", { type: "range", id, min: 0, max: STEPS, step: 1, value: STEPS / 2 });
  const node = el("div", { class: "slider" }, el("div", { class: "spread" }, el("label", { for: id }, el("bdi", {}, objective.name)), share), input);
  return {
    node,
    input,
    value: () => Number(input.value),
    set: (value) => {
      input.value = String(value);
    },
    show: (part) => {
      share.textContent = percent(part);
      input.setAttribute("aria-valuetext", percent(part));
    },
  };
}
