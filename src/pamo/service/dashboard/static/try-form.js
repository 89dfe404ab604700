// The restaurant on offer, and the form in which a visit is rated.

import { el, fill, fresh, name, svg } from "./dom.js";
import { told } from "./try-world.js";
import { capital } from "./try-words.js";

const COLOURS = [1, 2, 4, 5, 6, 7]; // of emblems

/** Sliders by objective: what somebody cares about, from 0 to 10. */
export class Weights {
  constructor(measures, legend) {
    this.inputs = new Map();
    const rows = measures.map((one) => {
      const id = fresh("weight");
      const shown = el("span", { class: "shown", "aria-hidden": "true" }, "5");
      const input = el("input", { id, type: "range", min: 0, max: 10, step: 1, value: 5 });
      input.addEventListener("input", () => fill(shown, input.value));
      this.inputs.set(one.name, { input, shown });
      return el("div", { class: "row" }, el("label", { for: id }, capital(one.title)), input, shown);
    });
    this.node = el("fieldset", { class: "weights" }, el("legend", { class: "unseen" }, legend), ...rows);
  }

  /** What is said: weights by objective. Nothing at all is taken to be everything alike. */
  get value() {
    const said = [...this.inputs].map(([key, { input }]) => [key, Number(input.value)]);
    return Object.fromEntries(said.some(([, weight]) => weight > 0) ? said : said.map(([key]) => [key, 1]));
  }

  set value(weights) {
    for (const [key, { input, shown }] of this.inputs) {
      input.value = weights[key];
      fill(shown, input.value);
    }
  }
}

/** The card and its form. onrate: is handed {scores, overall, stated} when a visit was rated. */
export class Card {
  constructor(measures, scale, onrate) {
    Object.assign(this, { measures, scale, onrate });
    this.heading = el("h2", { tabindex: "-1", id: fresh("restaurant") });
    this.kind = el("p", { class: "soft kind" });
    this.about = el("p", { class: "about" });
    this.emblem = svg("svg", { class: "emblem", viewBox: "0 0 48 48", width: 48, height: 48, "aria-hidden": "true" });
    this.why = el("p", { class: "small soft" });
    this.reason = el("details", { class: "why" }, el("summary", {}, "Why this one?"), this.why);
    this.stated = new Weights(measures, "What mattered to you?");
    this.asked = el("details", { class: "asked", open: true }, el("summary", {}, "What mattered to you?"), this.stated.node);
    this.problem = el("p", { class: "bad problem", role: "alert" });
    this.button = el("button", { type: "submit", class: "main" }, "Rate it, and show the next");
    this.node = el(
      "form",
      { class: "card visit", novalidate: true, "aria-labelledby": this.heading.id },
      el("div", { class: "head" }, this.emblem, el("div", {}, this.heading, this.kind)),
      this.about,
      this.reason,
      this.scores(),
      this.marks(),
      this.asked,
      this.problem,
      el("div", { class: "end" }, this.button, el("p", { class: "keys soft small" }, this.hint())),
    );
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.node.addEventListener("keydown", (event) => this.press(event));
  }

  hint() {
    const key = (text) => el("kbd", {}, text);
    return el("span", {}, key("1"), " to ", key("9"), ", ", key("0"), " for ten, then ", key("Enter"));
  }

  scores() {
    this.inputs = new Map();
    const rows = this.measures.map((one) => {
      const id = fresh("score");
      const [value, word] = [el("span", { class: "value" }), el("span", { class: "word" })];
      const input = el("input", { id, type: "range", min: one.low, max: one.high, step: one.step });
      const show = () => {
        const said = told(one, Number(input.value));
        fill(value, said.value);
        fill(word, said.word);
        word.className = `word ${said.good >= 0.6 ? "good" : said.good < 0.4 ? "bad" : "soft"}`;
        input.setAttribute("aria-valuetext", `${said.value}, ${said.word}`);
      };
      input.addEventListener("input", show);
      this.inputs.set(one.name, { input, show });
      // Not an output, which would be read out for each restaurant anew: the slider says the same.
      const shown = el("span", { class: "shown", "aria-hidden": "true" }, value, " ", word);
      return el("div", { class: "row" }, el("label", { for: id }, capital(one.name)), input, shown);
    });
    return el("fieldset", { class: "scores" }, el("legend", {}, "Your visit", el("span", { class: "soft small" }, " (change it if you like)")), ...rows);
  }

  marks() {
    const group = fresh("overall");
    this.radios = [];
    const marks = [];
    for (let mark = this.scale.low; mark <= this.scale.high; mark += 1) {
      const radio = el("input", { type: "radio", name: group, value: mark, class: "unseen" });
      this.radios.push(radio);
      marks.push(el("label", { class: "mark" }, radio, el("span", {}, String(mark))));
    }
    return el(
      "fieldset",
      { class: "overall" },
      el("legend", {}, "And all in all?"),
      el("div", { class: "marks" }, ...marks),
      el("p", { class: "ends soft small", "aria-hidden": "true" }, el("span", {}, "never again"), el("span", {}, "wonderful")),
    );
  }

  /** Shows a restaurant and what the visit was like. why: tells the reason, when it is asked for. */
  show(restaurant, scores, { place, asks, why }) {
    fill(this.heading, name(restaurant.name, "whole"));
    fill(this.kind, capital(restaurant.kind));
    fill(this.about, restaurant.about);
    const letter = [...restaurant.name.replace(/^The /, "")][0] ?? "";
    const colour = COLOURS[place % COLOURS.length];
    fill(
      this.emblem,
      svg("rect", { class: `c${colour}`, width: 48, height: 48, rx: 12 }),
      svg("text", { x: 24, y: 33, "text-anchor": "middle" }, letter.toUpperCase()),
    );
    for (const [key, { input, show }] of this.inputs) {
      input.value = scores[key];
      show();
    }
    for (const radio of this.radios) radio.checked = false;
    fill(this.problem);
    this.reason.open = false;
    fill(this.why);
    this.reason.ontoggle = () => {
      if (this.reason.open && !this.why.hasChildNodes()) why(this.why);
    };
    this.asked.hidden = !asks;
    this.busy = false;
  }

  set busy(busy) {
    this.button.disabled = busy;
    this.node.setAttribute("aria-busy", String(busy));
  }

  get busy() {
    return this.button.disabled;
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^[0-9]$/.test(event.key) && this.scale.low === 1 && this.scale.high === 10) {
      const radio = this.radios[event.key === "0" ? 9 : Number(event.key) - 1];
      radio.checked = true;
      radio.focus({ preventScroll: true });
      event.preventDefault();
    } else if (event.key === "Enter" && (event.target === this.heading || event.target.type === "radio" || event.target.type === "range")) {
      event.preventDefault();
      if (!event.repeat) this.submit();
    }
  }

  submit() {
    if (this.busy) return;
    const radio = this.radios.find((one) => one.checked);
    if (!radio) {
      fill(this.problem, "One number for all in all is missing.");
      this.radios[0].focus();
      return;
    }
    fill(this.problem);
    this.busy = true;
    const scores = Object.fromEntries([...this.inputs].map(([key, { input }]) => [key, Number(input.value)]));
    this.onrate({ scores, overall: Number(radio.value), stated: this.asked.hidden ? undefined : this.stated.value });
  }
}
