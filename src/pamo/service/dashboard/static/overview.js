// The overview: is it learning, how busy is it, and what was just decided.

import { every, get, start, stream } from "./api.js";
import { LineChart } from "./charts.js";
import { showExperiment } from "./experiment.js";
import { armName, base, el, fill, userLink } from "./dom.js";
import { fixed, digitsOf, number, percent, raw, time } from "./format.js";

const RANGES = [
  { name: "10 min", words: "10 minutes", resolution: "second", limit: 600, group: 10, seconds: 1 },
  { name: "3 h", words: "3 hours", resolution: "minute", limit: 180, group: 2, seconds: 60 },
  // From here on it is counted from the journal: over restarts, and all workers.
  { name: "24 h", words: "24 hours", resolution: "quarter-hour", limit: 96, group: 1, seconds: 900 },
  { name: "30 d", words: "30 days", resolution: "hour", limit: 720, group: 6, seconds: 3600 },
  { name: "1 y", words: "year", resolution: "day", limit: 365, group: 1, seconds: 86400 },
];
const SHOWN = 30;

/** Buckets joined into longer ones, with means over what was scored in each, and the empty ones between as gaps. */
export function grouped(buckets, width) {
  const found = new Map();
  for (const one of buckets) {
    const at = Math.floor(one.at / width) * width;
    if (!found.has(at)) found.set(at, nothing(at));
    const sum = found.get(at);
    for (const key of ["decisions", "explored", "feedbacks", "scored"]) sum[key] += one[key];
    if (one.scored) for (const key of ["got", "greedy", "random"]) sum[key] += one[key] * one.scored;
  }
  return [...found.values()].sort((a, b) => a.at - b.at);
}

function total(groups) {
  const sum = { decisions: 0, explored: 0, scored: 0, got: 0, greedy: 0, random: 0 };
  for (const one of groups) for (const key of Object.keys(sum)) sum[key] += one[key];
  return sum;
}

function tile(label, note) {
  const value = el("span", {}, "–");
  const small = el("span", { class: "note" }, note);
  return { value, small, node: el("div", { class: "tile" }, el("dt", {}, label), el("dd", {}, value, small)) };
}

start(async (place, signal) => {
  const scales = await get("/v1/objectives", {}, signal);
  const { overall } = scales;
  const shown = (value) => fixed(raw(overall, value), digitsOf(overall));
  let range = RANGES[0];

  const headline = el("p", { class: "headline", role: "status" }, "Reading…");
  const choices = el("div", { class: "choices", role: "group", "aria-label": "Time shown" });
  const card = el("section", { class: "card", "aria-label": "Learning" }, el("div", { class: "spread" }, headline, choices));
  const tiles = {
    decisions: tile("Decisions a second", "over the last 10 s"),
    feedbacks: tile("Feedback a second", "over the last 10 s"),
    explored: tile("Exploration", "of the decisions shown"),
    pending: tile("Feedback awaited", "decisions without any"),
    users: tile("Users", "who gave feedback"),
    arms: tile("Arms", "on offer"),
  };
  const share = el("section", { class: "card half" });
  const busy = el("section", { class: "card half" });
  const live = el("section", { class: "card" });
  const experiment = el("section", { class: "card", "aria-label": "Experiment", hidden: true });
  const alerts = el("ul", { class: "alerts", "aria-label": "What to know", hidden: true });
  fill(
    place,
    alerts,
    card,
    el("dl", { class: "tiles" }, Object.values(tiles).map((one) => one.node)),
    experiment,
    el("div", { class: "grid" }, share, busy, live),
  );
  const chart = new LineChart(card, {
    title: "What people got",
    note: "against greedy and random choice",
    height: 300,
    empty: "No feedback that could be compared came in this time.",
  });
  const exploring = new LineChart(share, { title: "Share of exploration", height: 200, empty: "No decision came in this time." });
  const pace = new LineChart(busy, { title: "Decisions and feedback a second", height: 200, empty: "Nothing came in this time." });

  const refresh = async () => {
    const [activity, counts, known] = await Promise.all([
      get("/v1/activity", { resolution: range.resolution, limit: range.limit }, signal),
      get("/v1/statistics", {}, signal),
      get("/v1/alerts", {}, signal),
    ]);
    alerts.hidden = !known.alerts.length;
    fill(alerts, ...known.alerts.map((one) => el("li", { class: one.level === "act" ? "notice bad" : "notice" }, one.sentence)));
    const width = range.seconds * range.group;
    const groups = grouped(activity.buckets, width);
    const sum = total(groups);
    fill(headline, ...(counts.arms ? saying(sum, shown, range.words) : ["There are no arms yet: ", el("a", { href: `${base}/arms` }, "add some"), ", and people can be given them."]));
    const from = Math.max(activity.now - range.seconds * range.limit, Math.min(activity.since, activity.now - 60));
    const x = { time: true, domain: [from, activity.now], read: (at) => time(at, { withSeconds: width < 60 }), name: "Time" };
    // The last bucket is shown once it is half full: before, it is mostly chance.
    const begun = groups.filter((one) => one.at + width / 2 <= activity.now);
    const line = (key, name, style, colour) => ({
      name,
      style,
      colour,
      points: withGaps(begun, width).map((one) => ({
        x: Math.max(one.at + width / 2, from),
        y: one.scored ? raw(overall, one[key] / one.scored) : null,
      })),
    });
    chart.update({
      x,
      y: { label: overall.name, format: (value) => fixed(value, digitsOf(overall)), within: [overall.low, overall.high].sort((a, b) => a - b) },
      series: [
        line("got", "what people got", "solid", 1),
        line("greedy", "greedy, expected", "dashed", 2),
        line("random", "random, expected", "dotted", 3),
      ],
    });
    const rate = (key, name, style, colour, of, groups = withGaps(begun, width)) => ({
      name,
      style,
      colour,
      points: groups.map((one) => ({ x: Math.max(one.at + width / 2, from), y: of(one[key], one) })),
    });
    exploring.update({
      x,
      y: { label: "", format: percent, domain: [0, 1] },
      series: [rate("explored", "chosen to learn more", "solid", 4, (value, one) => (one.decisions ? value / one.decisions : null))],
    });
    const seconds = (one) => Math.max(1, Math.min(width, activity.now - one.at, one.at + width - activity.since));
    const idle = withZeros(begun, width, activity.now);
    const most = Math.max(...begun.map((one) => Math.max(one.decisions, one.feedbacks) / seconds(one)), 0.001);
    pace.update({
      x,
      y: { label: "", domain: [0, most * 1.1] },
      series: [
        rate("decisions", "decisions", "solid", 1, (value, one) => value / seconds(one), idle),
        rate("feedbacks", "feedback", "dashed", 2, (value, one) => value / seconds(one), idle),
      ],
    });
    tiles.decisions.value.textContent = number(activity.decisions_per_second);
    tiles.feedbacks.value.textContent = number(activity.feedbacks_per_second);
    tiles.explored.value.textContent = sum.decisions ? percent(sum.explored / sum.decisions) : "–";
    tiles.pending.value.textContent = number(counts.pending_decisions);
    tiles.users.value.textContent = number(counts.users);
    tiles.arms.value.textContent = number(counts.arms);
    tiles.arms.small.textContent = counts.retired_arms ? `on offer, ${number(counts.retired_arms)} retired` : "on offer";
  };

  const again = every(3000, refresh, signal);
  fill(
    choices,
    ...RANGES.map((one) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": String(one === range),
          "aria-label": one.words,
          onclick: (event) => {
            range = one;
            for (const other of choices.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
            again();
          },
        },
        one.name,
      ),
    ),
  );
  follow(live, signal);
  showExperiment(experiment, scales, signal);
});

function saying(sum, shown, span) {
  if (!sum.scored) {
    return ["Once people give feedback, this shows what they got against what greedy and random choice would have got."];
  }
  const [got, greedy, random] = ["got", "greedy", "random"].map((key) => sum[key] / sum.scored);
  return [
    `In the last ${span} people got `,
    el("strong", {}, shown(got)),
    ` on average. Always taking what looked best was expected to get ${shown(greedy)}, and picking at random ${shown(random)}.`,
  ];
}

const nothing = (at) => ({ at, decisions: 0, explored: 0, feedbacks: 0, scored: 0, got: 0, greedy: 0, random: 0 });

/** Where nothing happened for longer than a few steps the line is broken, and not drawn through. */
function withGaps(groups, width) {
  const found = [];
  for (const one of groups) {
    const last = found[found.length - 1];
    if (last && one.at - last.at > 3 * width) found.push(nothing(last.at + width));
    found.push(one);
  }
  return found;
}

/** Where nothing happened there were none a second: what counts things is drawn at 0 there, up to now. */
export function withZeros(groups, width, now) {
  const found = [];
  const last = Math.floor((now - width / 2) / width) * width;
  for (const one of groups) {
    while (found.length && found[found.length - 1].at + width < one.at) found.push(nothing(found[found.length - 1].at + width));
    found.push(one);
  }
  while (found.length && found[found.length - 1].at + width <= last) found.push(nothing(found[found.length - 1].at + width));
  return found;
}

/** The live stream: the last decisions, the newest first. */
function follow(card, signal) {
  const state = el("span", { class: "badge", role: "status" }, "connecting");
  const rows = el("tbody", {});
  const pause = el("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const more = el("p", { class: "soft small" });
  let stopped = false;
  let skipped = 0;
  pause.addEventListener("click", () => {
    stopped = !stopped;
    pause.setAttribute("aria-pressed", String(stopped));
    pause.textContent = stopped ? "Go on" : "Pause";
  });
  card.append(
    el("div", { class: "spread" }, el("h2", {}, "Decisions as they are made"), el("div", { class: "choices" }, state, pause)),
    el(
      "div",
      { class: "table", role: "region", tabindex: "0", "aria-label": "Decisions as they are made" },
      el(
        "table",
        { class: "live" },
        el("thead", {}, el("tr", {}, ["Time", "User", "Arm", "Why"].map((label) => el("th", { scope: "col" }, label)))),
        rows,
      ),
    ),
    more,
  );
  const row = (one) =>
    el(
      "tr",
      { class: "fresh" },
      el("td", { class: "when" }, time(one.at, { withSeconds: true })),
      el("td", {}, userLink(one.user)),
      el("td", {}, armName(one.arm, one.name)),
      el("td", {}, el("span", { class: one.explored ? "badge explored" : "badge" }, one.explored ? "to learn" : "best known")),
    );
  const update = ({ decisions, shown }) => {
    if (stopped) return;
    skipped += Math.max(0, decisions - shown.length);
    rows.prepend(...shown.reverse().map(row));
    while (rows.childElementCount > SHOWN) rows.lastElementChild.remove();
    more.textContent = rows.childElementCount
      ? skipped ? `${skipped.toLocaleString()} more went by too fast to be shown.` : ""
      : "None yet.";
  };
  const missed = ({ updates }) => {
    skipped += updates;
  };
  stream("/v1/stream", { update, missed }, (now) => {
    state.textContent = now === "live" ? "live" : "connecting";
    if (now === "live") {
      fill(rows);
      skipped = 0;
    }
  }, signal).catch(() => {
    state.textContent = "not allowed";
  });
}
