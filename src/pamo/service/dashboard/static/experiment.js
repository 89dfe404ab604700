// The experiment, where there is one: a sentence, and the difference of each score with its interval.

import { every, get } from "./api.js";
import { el, fill, name } from "./dom.js";
import { digitsOf, fixed, number, percent, time } from "./format.js";
import { span } from "./table.js";

/** The difference with its sign, which a minus alone would not show for what is more. */
const signed = (value, digits) => `${value > 0 ? "+" : ""}${fixed(value, digits)}`;

/** Fills a section with the newest experiment, and hides it while there is none. */
export function showExperiment(section, scales, signal) {
  const refresh = async () => {
    const { experiment } = await get("/v1/experiment", {}, signal);
    section.hidden = !experiment;
    if (experiment) fill(section, ...told(experiment, scales));
  };
  every(15000, refresh, signal);
}

function told(experiment, { overall, objectives }) {
  const compared = experiment.variants.map((variant) => {
    const scores = [[overall, variant.overall], ...objectives.map((one) => [one, variant.objectives[one.name]])]
      .filter(([, one]) => one.treated_users + one.control_users > 0);
    return { variant, scores, drawn: scores.map(([scale, one]) => share(scale, one)) };
  });
  // All on one axis, so that variants can be compared by eye.
  const ends = compared.flatMap(({ drawn }) => drawn.flatMap((one) => (one ? [Math.abs(one.low), Math.abs(one.high)] : [])));
  const room = 1.05 * Math.max(0.01, ...ends);
  const state = experiment.ended === null ? `since ${time(experiment.started)}` : `ended ${time(experiment.ended)}`;
  const users = experiment.variants.reduce((sum, one) => sum + one.users, experiment.control_users);
  const shares = experiment.variants.reduce((sum, one) => sum + one.share, experiment.control);
  const several = experiment.variants.length > 1;
  return [
    el("div", { class: "spread" }, el("h2", {}, "Is it worth it?"), el("span", { class: "badge" }, name(experiment.name), `, ${state}`)),
    ...(several ? [] : [el("p", { class: "headline" }, experiment.sentence)]),
    experiment.warning ? el("p", { class: "notice bad" }, experiment.warning) : null,
    ...compared.flatMap(({ variant, scores, drawn }) => [
      several ? heading(variant) : null,
      scores.length ? table(variant, scores, drawn, room) : null,
    ]),
    el(
      "p",
      { class: "soft small" },
      `${number(experiment.control_users)} of ${number(users)} users who gave feedback are in control (${percent(experiment.control / shares)} are meant to be), served by `,
      name(experiment.policy),
      several
        ? `. Each of the ${experiment.variants.length} variants has its part of the 5 % of error, so that all intervals of a score together hold the differences with 95 %, however often you look.`
        : ". Intervals hold the difference with 95 %, however often you look.",
    ),
  ];
}

/** A difference as shares of its scale, so that what is better is always to the right. */
function share(scale, one) {
  const size = (scale.high - scale.low) * (scale.lower_is_better ? -1 : 1);
  const [low, high] = [one.low / size, one.high / size].sort((a, b) => a - b);
  return one.difference === null ? null : { mean: one.difference / size, low, high };
}

/** What those who are treated are called on the page. */
const called = (variant) => (variant.name === "treated" ? "pamo" : variant.name);

function heading(variant) {
  const weights = Object.entries(variant.preference ?? {}).map(([objective, weight]) => `${objective} ${weight}`);
  return el(
    "div",
    { class: "variant" },
    el("div", { class: "spread" }, el("h3", {}, name(called(variant))), el("span", { class: "badge" }, `${percent(variant.share)}: `, name(variant.policy), weights.length ? `, by ${weights.join(", ")}` : "")),
    el("p", {}, variant.sentence),
  );
}

function table(variant, scores, drawn, room) {
  const head = ["Score", variant.name === "treated" ? "With pamo" : "Variant", "Control", "Difference", "Worse / better"];
  const rows = scores.map(([scale, one], place) => {
    const digits = digitsOf(scale);
    const words = one.difference === null
      ? ["too few users yet"]
      : [
          `${signed(one.difference, digits)} `,
          el("span", { class: "soft small together" }, `${signed(one.low, digits)} … ${signed(one.high, digits)}`),
        ];
    const style = one.better === null ? "" : one.better ? " better" : " worse";
    const picture = drawn[place] ? span(drawn[place], [-room, room]) : "–";
    if (drawn[place]) picture.className = `span around${style}`;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, name(scale.name)),
      el("td", { class: "number wide" }, fixed(one.treated, digits)),
      el("td", { class: "number wide" }, fixed(one.control, digits)),
      el("td", {}, words),
      el("td", {}, picture),
    );
  });
  return el(
    "div",
    { class: "table", role: "region", tabindex: "0", "aria-label": `Differences by score, with ${called(variant)}` },
    el(
      "table",
      { class: "differences" },
      el("thead", {}, el("tr", {}, head.map((label, place) => el("th", { scope: "col", class: place === 1 || place === 2 ? "number wide" : null }, label)))),
      el("tbody", {}, rows),
    ),
  );
}
