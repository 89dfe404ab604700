// The arms: a leaderboard by objective, and the Pareto front of any two objectives.

import { get, path, send, start, trouble } from "./api.js";
import { ScatterChart } from "./charts.js";
import { armName, el, fill, name } from "./dom.js";
import { digitsOf, fixed, number, percent, raw, rawEstimate } from "./format.js";
import { extent } from "./scales.js";
import { Table, span } from "./table.js";

const PLOTTED = 200;

start(async (place, signal) => {
  const { objectives, overall } = await get("/v1/objectives", {}, signal);
  const plot = el("section", { class: "card", "aria-label": "Pareto front" });
  const board = el("section", { class: "card" });
  fill(place, el("div", { class: "grid" }, objectives.length > 1 && plot, board));
  if (objectives.length > 1) front(plot, objectives, signal);
  await leaderboard(board, objectives, overall, signal);
});

function leaderboard(card, objectives, overall, signal) {
  let search = "";
  const field = el("input", { type: "search", id: "search", placeholder: "A part of a name or an id", maxlength: 256, autocomplete: "off" });
  const orders = [
    ["typical", "for the average taste"],
    ["mean:", overall.name],
    ...objectives.map((one) => [`mean:${one.name}`, one.name]),
    ["pulls", "pulls"],
    ["name", "name"],
  ];
  const by = el("select", { id: "by" }, orders.map(([value, label]) => el("option", { value }, label)));
  card.append(
    el("h2", {}, "Leaderboard"),
    el(
      "div",
      { class: "fields" },
      el("div", { class: "field" }, el("label", { for: "search" }, "Search"), field),
      el("div", { class: "field" }, el("label", { for: "by" }, "Sorted by"), by),
    ),
  );
  const hint = el(
    "p",
    { class: "notice", hidden: true },
    "There are no arms yet, and nothing can be decided without. Add them below, when the service starts, ",
    el("code", {}, "pamo serve --arms inn-1,inn-2"),
    ", or at any time by ",
    el("code", {}, "PUT /v1/arms/inn-1"),
    " with ",
    el("code", {}, '{"name": "Anchor Inn"}'),
    ".",
  );
  const estimate = (scale, of) => (row) => {
    const found = of(row);
    if (!found) return null;
    const { mean, low, high } = rawEstimate(scale, found);
    const digits = digitsOf(scale);
    return el(
      "span",
      {},
      fixed(mean, digits),
      el("span", { class: "soft small interval" }, ` ${fixed(low, digits)} … ${fixed(high, digits)}`),
      span({ mean: found.mean, low: found.low, high: found.high }, [0, 1]),
    );
  };
  const edit = editing(() => table.refresh());
  const table = new Table(card, {
    caption: "Arms by objective, with 95 % intervals",
    sort: "typical",
    none: "No arm to show.",
    fail: trouble,
    columns: [
      { label: "Arm", sort: "name", cell: (row) => armName(row.arm, row.name) },
      { label: "For the average taste", sort: "typical", number: true, wide: true, cell: estimate(overall, (row) => row.typical) },
      { label: `${overall.name}, of who got it`, sort: "mean:", number: true, wide: true, cell: estimate(overall, (row) => row.overall) },
      ...objectives.map((one) => ({
        label: one.name,
        sort: `mean:${one.name}`,
        number: true,
        wide: true,
        cell: estimate(one, (row) => row.objectives[one.name]),
      })),
      { label: "Pulls", sort: "pulls", number: true, cell: (row) => number(row.pulls) },
      { label: "Change", cell: edit.buttons },
    ],
    ask: async ({ sort, descending, offset, limit }) => {
      by.value = sort;
      const [kind, ...rest] = sort.split(":");
      const order = descending ? "descending" : "ascending";
      const found = await get("/v1/leaderboard", { sort: kind, objective: rest.join(":"), order, search, offset, limit }, signal);
      hint.hidden = found.total > 0 || search !== "";
      return { rows: found.arms, total: found.total };
    },
  });
  card.append(
    hint,
    el("p", { class: "soft small" }, "Each bar runs from the worst (left) to the best (right) of its scale; the mark is the mean, the band holds it with 95 %. Each arm is given to those whom it suits, so that overall scores are of other people each time; for the average taste, arms can be compared."),
    edit.form,
  );
  by.addEventListener("change", () => {
    table.sort = by.value;
    table.descending = by.value !== "name";
    table.go(0).then(() => trouble(null), trouble);
  });
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      search = field.value;
      table.go(0).then(() => trouble(null), trouble);
    }, 150);
  });
  return table.refresh();
}

/** What changes arms, for whoever may: a form to add and rename, and buttons for each row. done: called after a change. */
function editing(done) {
  const id = el("input", { type: "text", id: "arm-id", maxlength: 256, required: true, autocomplete: "off", placeholder: "inn-1" });
  const called = el("input", { type: "text", id: "arm-name", maxlength: 256, autocomplete: "off", placeholder: "Anchor Inn" });
  const said = el("p", { class: "soft small", role: "status" });
  const change = async (method, arm, body, what) => {
    try {
      await send(method, path`/v1/arms/${arm}`, body);
      trouble(null);
      fill(said, name(body?.name || arm), what);
      await done();
    } catch (error) {
      trouble(error);
    }
  };
  const form = el(
    "form",
    { class: "edit" },
    el("h3", {}, "Add or rename an arm"),
    el(
      "div",
      { class: "fields" },
      el("div", { class: "field" }, el("label", { for: "arm-id" }, "Id"), id),
      el("div", { class: "field" }, el("label", { for: "arm-name" }, "Name, if it has one"), called),
      el("button", { type: "submit", class: "main" }, "Save"),
    ),
    el("p", { class: "soft small" }, "An arm that was retired is offered again once it is added again. This takes a key with the role admin, where there are keys."),
    said,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await change("PUT", id.value, called.value ? { name: called.value } : {}, " is on offer.");
    form.reset();
  });
  const buttons = (row) => {
    const retire = el("button", { type: "button", class: "quiet", "aria-label": `Retire ${row.name}` }, "Retire");
    let asked = false;
    retire.addEventListener("click", () => {
      if (asked) return change("DELETE", row.arm, undefined, " is retired: nobody is given it any more, and what was learned of it stays.");
      asked = true;
      retire.textContent = "Really retire?";
      retire.setAttribute("aria-label", `Really retire ${row.name}?`);
      retire.addEventListener("blur", () => {
        asked = false;
        retire.textContent = "Retire";
        retire.setAttribute("aria-label", `Retire ${row.name}`);
      }, { once: true });
      return undefined;
    });
    const rename = el("button", { type: "button", class: "quiet", "aria-label": `Rename ${row.name}` }, "Rename");
    rename.addEventListener("click", () => {
      id.value = row.arm;
      called.value = row.name === row.arm ? "" : row.name;
      called.focus();
      called.select();
    });
    return el("span", { class: "changes" }, rename, retire);
  };
  return { form, buttons };
}

function front(card, objectives, signal) {
  const choose = (id, label, chosen) => {
    const select = el("select", { id }, objectives.map((one, place) => el("option", { value: place, selected: place === chosen }, one.name)));
    return [select, el("div", { class: "field" }, el("label", { for: id }, label), select)];
  };
  const [across, acrossField] = choose("across", "Across", 0);
  const [up, upField] = choose("up", "Up", 1);
  const of = el("select", { id: "of" }, el("option", { value: "two" }, "these two"), el("option", { value: "all" }, "all objectives"));
  const ofField = objectives.length > 2 && el("div", { class: "field" }, el("label", { for: "of" }, "Front of"), of);
  const said = el("p", { class: "soft small", role: "status" });
  const chart = new ScatterChart(card, {
    title: "Pareto front",
    note: "arms that no other arm beats in every objective",
    height: 380,
    empty: "No arm has had feedback in these objectives yet.",
  });
  card.prepend(el("div", { class: "fields" }, acrossField, upField, ofField));
  card.append(said);
  const draw = async () => {
    const [x, y] = [objectives[Number(across.value)], objectives[Number(up.value)]];
    if (x === y) {
      const other = (Number(across.value) + 1) % objectives.length;
      up.value = String(other);
      return draw();
    }
    const two = objectives.length === 2 || of.value === "two";
    const { arms } = await get("/v1/front", { ...(two ? { x: x.name, y: y.name } : {}), limit: PLOTTED }, signal);
    const points = arms.filter((arm) => arm.objectives[x.name] && arm.objectives[y.name]).map((arm) => pointOf(arm, x, y));
    const axis = (scale, key) => {
      const domain = extent(points.flatMap((point) => [point[key], ...(point.marked ? [point[`${key}Low`], point[`${key}High`]] : [])]), {
        within: [scale.low, scale.high],
      });
      const better = scale.lower_is_better ? "lower is better" : "higher is better";
      return {
        name: scale.name,
        label: `${scale.name} (${better}) ${key === "x" ? "→" : "↑"}`,
        domain: scale.lower_is_better ? domain.reverse() : domain,
        format: (value) => fixed(value, digitsOf(scale)),
      };
    };
    chart.update({
      x: axis(x, "x"),
      y: axis(y, "y"),
      points,
      marked: "on the front by what is known; the larger, the surer",
      others: "not on it",
      stairs: two,
    });
    const marked = points.filter((point) => point.marked).length;
    said.textContent = points.length
      ? `${number(marked)} of the ${number(points.length)} arms shown ${marked === 1 ? "is" : "are"} on the front.${arms.length === PLOTTED ? ` Shown are the ${PLOTTED} that are on it or most likely to be.` : ""}`
      : "";
    return undefined;
  };
  const again = () => draw().then(() => trouble(null), trouble);
  for (const select of [across, up, of]) select.addEventListener("change", again);
  return again();
}

function pointOf(arm, x, y) {
  const [across, up] = [rawEstimate(x, arm.objectives[x.name]), rawEstimate(y, arm.objectives[y.name])];
  const sure = arm.confidence === null ? null : percent(arm.confidence);
  return {
    name: arm.name,
    x: raw(x, arm.objectives[x.name].mean),
    y: raw(y, arm.objectives[y.name].mean),
    xLow: across.low,
    xHigh: across.high,
    yLow: up.low,
    yHigh: up.high,
    marked: arm.on_front,
    strength: arm.confidence ?? 0,
    confidence: sure ?? "–",
    note: `${arm.on_front ? "on the front" : "not on the front"}${sure === null ? "" : `, truly on it with a chance of ${sure}`}, ${number(arm.pulls)} pulls`,
  };
}
