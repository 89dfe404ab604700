// One user: what they care about, how that moved, and why they were offered what they were offered.

import { get, path, start, trouble } from "./api.js";
import { BarChart, LineChart } from "./charts.js";
import { armName, el, fill, name } from "./dom.js";
import { digitsOf, fixed, number, percent, time } from "./format.js";

const SOURCES = {
  stated: "as stated by the user",
  overall: "learned from the user's overall scores",
  others: "this user has given no overall score yet: this is what users have in common",
  nothing: "nobody has given an overall score yet: all objectives count the same",
};
const STYLES = ["solid", "dashed", "dotted"];
const PAGE = 10;

start(async (place, signal) => {
  let user;
  try {
    user = decodeURIComponent(location.pathname.split("/")[2]);
  } catch {
    fill(place, el("p", { class: "notice bad" }, "This address holds no user's id."));
    return;
  }
  fill(document.getElementById("title"), name(user, "whole"));
  document.title = `${user.slice(0, 60)} · pamo`;
  const [{ objectives, overall }, preference, history] = await Promise.all([
    get("/v1/objectives", {}, signal),
    get(path`/v1/users/${user}/preference`, {}, signal),
    get(path`/v1/users/${user}/preference/history`, {}, signal),
  ]);
  const bars = el("section", { class: "card half" });
  const moves = el("section", { class: "card half" });
  const made = el("section", { class: "card" });
  fill(place, el("div", { class: "grid" }, bars, moves, made));
  showPreference(bars, preference);
  showHistory(moves, history, objectives);
  await showDecisions(made, user, objectives, overall, signal);
});

function showPreference(card, preference) {
  const ranked = Object.entries(preference.objectives).sort(([, a], [, b]) => b.weight - a.weight);
  const chart = new BarChart(card, { title: "What this user cares about", note: SOURCES[preference.source] ?? preference.source });
  chart.update({
    label: "Objective",
    interval: `holds the weight with ${percent(preference.level)}`,
    format: (value) => fixed(value, 2),
    bars: ranked.map(([objective, one]) => ({ name: objective, value: one.weight, low: one.low, high: one.high, colour: 1 })),
  });
  if (preference.changed !== null) {
    card.append(el("p", { class: "changed" }, `Cares about other things than before since ${time(preference.changed)}: only what came since counts.`));
  }
  card.append(el("p", { class: "soft small" }, `${number(preference.rounds)} ${preference.rounds === 1 ? "feedback" : "feedbacks"} so far.`));
}

function showHistory(card, history, objectives) {
  const chart = new LineChart(card, {
    title: "How that moved",
    note: "with each feedback",
    height: 300,
    empty: "No feedback yet.",
  });
  const last = history.points[history.points.length - 1]?.objectives ?? {};
  const leading = [...objectives].sort((a, b) => (last[b.name]?.weight ?? 0) - (last[a.name]?.weight ?? 0));
  const when = new Map(history.points.map((point) => [point.rounds, point.at]));
  chart.update({
    x: {
      label: "feedbacks →",
      name: "Feedbacks",
      format: (value) => number(value),
      read: (value) => `After ${number(value)} (${when.has(value) ? time(when.get(value)) : ""})`,
    },
    y: { label: "weight", format: (value) => fixed(value, 2) },
    series: leading.map((one) => {
      const place = objectives.findIndex((other) => other.name === one.name);
      return {
        name: one.name,
        colour: (place % 8) + 1,
        style: STYLES[place % STYLES.length],
        points: history.points.map((point) => {
          const weight = point.objectives[one.name];
          return { x: point.rounds, y: weight?.weight ?? null };
        }),
      };
    }),
  });
}

async function showDecisions(card, user, objectives, overall, signal) {
  const list = el("ol", { class: "decisions", "aria-label": "Decisions, the newest first" });
  const more = el("button", { type: "button", hidden: true }, "Show more");
  const said = el("p", { class: "soft", role: "status" });
  card.append(el("h2", {}, "Decisions"), list, said, more);
  let before;
  const next = async () => {
    const page = await get(path`/v1/users/${user}/decisions`, { limit: PAGE, before }, signal);
    list.append(...page.decisions.map((one) => item(one, page.names, objectives, overall)));
    before = page.next;
    more.hidden = before === null;
    said.textContent = list.childElementCount ? "" : "None yet.";
  };
  more.addEventListener("click", () => next().then(() => trouble(null), trouble));
  await next();
}

function item(one, names, objectives, overall) {
  const { chosen, without_exploration: best, explored, sentence } = one.explanation;
  return el(
    "li",
    {},
    el(
      "details",
      {},
      el(
        "summary",
        {},
        el("span", { class: "soft when" }, time(one.at)),
        armName(one.arm, names[one.arm]),
        el("span", { class: explored ? "badge explored" : "badge" }, explored ? "to learn" : "best known"),
        el("span", { class: "soft given" }, given(one.feedback, overall)),
      ),
      el("p", { class: "sentence" }, sentence),
      chosen && parts(chosen, best, explored, one.explanation.scores),
      explored && best && el("p", {}, "Without exploration it would have been ", armName(best.arm, names[best.arm]), "."),
      one.feedback && rewards(one.feedback, objectives),
      el("p", { class: "soft small" }, `${one.policy}, chosen with a chance of ${percent(one.propensity)}, decision `, name(one.id)),
    ),
  );
}

function given(feedback, overall) {
  if (!feedback) return "feedback awaited";
  if (feedback.overall === null) return "rated by objective";
  return `${overall.name} ${fixed(feedback.overall, digitsOf(overall))}`;
}

/** What an arm's score is made of, beside that of the arm that would have been chosen otherwise. */
function parts(chosen, best, explored, sources) {
  const compared = explored && best && best.arm !== chosen.arm ? [chosen, best] : [chosen];
  const row = (label, of, kind = null) =>
    el("tr", { class: kind }, el("th", { scope: "row" }, label), compared.map((one) => el("td", { class: "number" }, of(one))));
  const untried = "not tried yet";
  return el(
    "div",
    { class: "table", role: "region", tabindex: "0", "aria-label": "What the score is made of" },
    el(
      "table",
      { class: "parts" },
      el(
        "thead",
        {},
        el("tr", {}, el("th", { scope: "col" }, "Worth by"), compared.map((one, place) => el("th", { scope: "col", class: "number" }, name(one.arm), place ? " (otherwise)" : ""))),
      ),
      el(
        "tbody",
        {},
        Object.keys(chosen.values).map((objective) => row(worthBy(objective, sources), (one) => fixed(one.values[objective], 3))),
        row("Value", (one) => fixed(one.value, 3), "sum"),
        row("Reward bonus", (one) => (one.reward_bonus === null ? untried : fixed(one.reward_bonus, 3))),
        row("Preference bonus", (one) => fixed(one.preference_bonus, 3)),
        row("Score", (one) => (one.score === null ? untried : fixed(one.score, 3)), "sum"),
      ),
    ),
  );
}

/** An objective, and where its score was from, unless that is feedback to this very arm. */
function worthBy(objective, sources) {
  const source = sources[objective];
  return source === "given" ? `${objective} (known beforehand)` : source === "foretold" ? `${objective} (foretold)` : objective;
}

function rewards(feedback, objectives) {
  const known = objectives.filter((one) => one.name in feedback.rewards);
  if (!known.length) return null;
  const said = known.map((one) => `${one.name} ${fixed(feedback.rewards[one.name], digitsOf(one))}`);
  return el("p", {}, `Feedback at ${time(feedback.at)}: ${said.join(", ")}.`);
}
