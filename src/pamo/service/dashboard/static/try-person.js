// One of the two whose taste is learned: the guess as bars, and the restaurants they were given.

import { BarChart } from "./charts.js";
import { el, fill, name } from "./dom.js";
import { capital, shares } from "./try-words.js";

const SHOWN = 5;

/** A panel. title: whose taste it is. colour: of the bars. */
export class Person {
  constructor(measures, { title, colour, mark }) {
    Object.assign(this, { measures, colour, mark });
    this.note = el("p", { class: "soft small note" });
    this.place = el("div", {});
    this.list = el("ol", { class: "recent" });
    this.recent = el("div", {}, el("h3", {}, "Lately"), this.list);
    this.node = el("section", { class: "card person" }, this.place, this.note, this.recent);
    this.chart = new BarChart(this.place, { title, row: 44, empty: "Nobody here yet." });
    this.show({ note: "", answer: null, visits: [] });
  }

  /** Shows a guess (what /v1/users/{id}/preference answers, or null) and visits, the latest last. */
  show({ answer, visits, note }) {
    fill(this.note, note);
    this.recent.hidden = !visits.length;
    this.node.classList.toggle("waiting", answer === null);
    const found = answer === null ? [] : shares(answer.objectives);
    // In the world's order, so that the bars of both can be compared, and do not jump about.
    const bars = this.measures
      .map((one) => [one, found.find((other) => other.name === one.name)])
      .filter(([, guess]) => guess !== undefined)
      .map(([one, guess]) => ({ name: capital(one.title), value: guess.share, low: guess.low, high: guess.high, colour: this.colour }));
    this.chart.update({
      label: "Cares about",
      bars,
      domain: [0, 0.8],
      format: (share) => String(Math.round(100 * share)),
      interval: "probably in this range, of 100 in all",
    });
    const latest = visits.slice(-SHOWN).reverse();
    fill(this.list, ...latest.map((one) => el("li", {}, name(one.restaurant.name), el("span", { class: "gave" }, `${this.mark} ${one.overall}`))));
  }
}
