// Try it: restaurants are offered and rated, and what the visitor cares about is guessed, beside a guest of opposite taste.
//
// Both are users of the public API like any others; only the world they live in is the demonstration's own.

import { get, path, post, send, start, trouble } from "./api.js";
import { el, fill, fresh, name } from "./dom.js";
import { Card, Weights } from "./try-form.js";
import { Person } from "./try-person.js";
import { favourite, shares, verdict } from "./try-words.js";
import { isOpposite, measuresOf, offer, opposite, overallOf, strength, visit } from "./try-world.js";

const ENOUGH = 10; // ratings, after which it is said in words
const GUEST_FROM = 3; // ratings, where the guest's taste is the opposite of a guess

const MODES = {
  never: { label: "Nothing", about: "You only rate. It finds out what you care about from your overall scores." },
  afterwards: { label: "Afterwards", about: "With each rating you also say what mattered to you, and it goes by that." },
  before: { label: "Up front", about: "You say what you care about first, and it goes by that from the first offer on." },
};

class Try {
  constructor(place, world, declared) {
    this.world = world;
    this.scale = declared.overall;
    this.measures = measuresOf(world, declared.objectives);
    this.titles = Object.fromEntries(this.measures.map((one) => [one.name, one.title]));
    this.places = new Map(world.restaurants.map((one, number) => [one.id, { ...one, number }]));
    this.build(place);
  }

  build(place) {
    this.modes = new Map();
    const choices = Object.entries(MODES).map(([mode, { label }]) => {
      const button = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.change(mode) }, label);
      this.modes.set(mode, button);
      return button;
    });
    const title = fresh("modes");
    this.about = el("p", { class: "soft small" });
    const again = el("button", { type: "button", class: "again", onclick: () => this.begin(this.mode) }, "Start over");
    const modes = el(
      "section",
      { class: "card modes", "aria-labelledby": title },
      el("div", {}, el("h2", { id: title }, "How much do you tell it?"), this.about),
      el("div", { class: "choices", role: "group", "aria-labelledby": title }, ...choices),
      again,
    );
    this.said = new Weights(this.measures, "What do you care about?");
    this.saidButton = el("button", { type: "button", class: "main", onclick: () => this.guarded(() => this.next()) }, "Show me a restaurant");
    this.saidNote = el("p", { class: "soft small" }, "You can change this at any time; it holds from the next restaurant on.");
    this.saidFold = el("details", { class: "asked", open: true }, el("summary", {}, "What do you care about?"), this.said.node, this.saidNote);
    this.saying = el("section", { class: "card saying", "aria-label": "What you care about" }, this.saidFold, this.saidButton);
    this.card = new Card(this.measures, this.scale, (rating) => this.guarded(() => this.rate(rating)));
    this.bar = el("progress", { max: ENOUGH, value: 0, "aria-label": "Ratings" });
    this.count = el("p", { class: "small soft" });
    this.words = el("p", { class: "headline", role: "status" });
    this.meanwhile = el("p", { class: "soft small" });
    this.telling = el("section", { class: "card telling", "aria-label": "What it thinks" }, this.words, this.meanwhile, el("div", { class: "progress" }, this.bar, this.count));
    this.you = new Person(this.measures, { title: "What you care about", colour: 1, mark: "you gave" });
    this.guest = new Person(this.measures, { title: "A guest of the opposite taste", colour: 2, mark: "gave" });
    this.dialog = this.confirming();
    const rating = el("div", { class: "rating" }, this.saying, this.card.node);
    const two = el("div", { class: "two" }, this.you.node, this.guest.node);
    fill(place, modes, el("div", { class: "try" }, this.telling, rating, two), this.dialog);
  }

  confirming() {
    const [title, text] = [fresh("dialog"), fresh("dialog")];
    this.question = el("p", { id: text });
    const dialog = el(
      "dialog",
      { class: "card", "aria-labelledby": title, "aria-describedby": text },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: title }, "Start over?"),
        this.question,
        el("div", { class: "end" }, el("button", { value: "go", class: "main" }, "Start over"), el("button", { value: "stay" }, "Go on")),
      ),
    );
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "go") this.begin(this.wanted);
      dialog.returnValue = "";
    });
    return dialog;
  }

  change(mode) {
    if (mode === this.mode) return;
    this.wanted = mode;
    if (!this.turn.visits.length) {
      this.begin(mode);
      return;
    }
    fill(this.question, `“${MODES[mode].label}” starts with a new visitor: what was learned of you so far is forgotten.`);
    this.dialog.showModal();
  }

  /** Does something for this visitor; shows what goes wrong, and lets them try again. */
  async guarded(work) {
    const turn = this.turn;
    try {
      await work();
      if (turn === this.turn) trouble(null);
    } catch (error) {
      if (turn === this.turn) {
        this.card.busy = false;
        trouble(error);
      }
    }
  }

  /** Starts over: a new visitor, and the old one forgotten. */
  begin(mode) {
    const before = this.turn;
    const token = [...crypto.getRandomValues(new Uint32Array(2))].map((one) => one.toString(36)).join("");
    this.mode = mode;
    this.turn = { user: `visitor ${token}`, token, visits: [], shown: 0, decision: null, guest: null, guests: 0, entertained: Promise.resolve() };
    for (const [one, button] of this.modes) button.setAttribute("aria-pressed", String(one === mode));
    fill(this.about, MODES[mode].about);
    const even = Object.fromEntries(this.measures.map((one) => [one.name, 5]));
    this.said.value = even;
    this.card.stated.value = even;
    this.card.asked.open = true;
    this.saying.hidden = mode !== "before";
    this.saidButton.hidden = false;
    this.saidNote.hidden = true;
    this.saidFold.open = true;
    this.card.node.hidden = mode === "before";
    this.guest.show({ answer: null, visits: [], note: this.waiting() });
    return this.guarded(async () => {
      for (const user of [before?.user, before?.guest?.user]) if (user) await send("DELETE", path`/v1/users/${user}`);
      if (mode !== "before") await this.next(false);
      await this.learned();
    });
  }

  waiting() {
    if (this.mode !== "never") return "Comes in after your first rating, if you name a favourite.";
    return `Comes in after your ${GUEST_FROM}rd rating, when there is a guess to be the opposite of.`;
  }

  /** Asks for a restaurant, and shows it. */
  async next(focus = true) {
    const turn = this.turn;
    const known = this.mode === "before" ? { preference: this.said.value } : {};
    const arms = offer(this.world, turn.visits.map((one) => one.restaurant.id));
    const decision = await post("/v1/decisions", { user: turn.user, arms, ...known });
    if (turn !== this.turn) return;
    turn.decision = decision;
    const restaurant = this.places.get(decision.arm);
    turn.scores = visit(this.measures, restaurant);
    this.card.show(restaurant, turn.scores, {
      place: restaurant.number,
      asks: this.mode === "afterwards",
      why: (into) => this.guarded(async () => this.explain(into, await get(path`/v1/decisions/${decision.id}`), turn.scores)),
    });
    this.card.node.hidden = false;
    if (!this.saidButton.hidden) this.saidFold.open = false; // from now on there is something else to look at
    this.saidButton.hidden = true;
    this.saidNote.hidden = false;
    if (!focus) return;
    this.card.heading.focus({ preventScroll: true });
    if (this.card.node.getBoundingClientRect().top < 0) this.telling.scrollIntoView({ block: "start" });
  }

  /** Says why a restaurant was offered. */
  explain(into, { explanation }, scores) {
    const { chosen, explored, without_exploration: instead } = explanation;
    if (explored && instead && this.places.has(instead.arm)) {
      fill(into, "To find out more about you. Going by what it knows, ", name(this.places.get(instead.arm).name), " would suit you better.");
      return;
    }
    const best = strength(this.measures, this.world.restaurants, this.places.get(chosen?.arm), chosen?.values ?? {}, scores);
    fill(into, "Of those that you have not had lately, it is thought to suit you best", best ? `, above all for its ${this.titles[best]}.` : ".");
  }

  async rate({ scores, overall, stated }) {
    const turn = this.turn;
    if (turn.decision !== null) {
      const body = { rewards: scores, overall, ...(stated ? { preference: stated } : {}) };
      await post(path`/v1/decisions/${turn.decision.id}/feedback`, body);
      if (turn !== this.turn) return;
      turn.visits.push({ restaurant: this.places.get(turn.decision.arm), overall });
      turn.decision = null;
      this.card.asked.open = false;
    }
    await this.next();
    await this.learned();
  }

  /** Shows what is thought of the visitor by now, and has the guest come along. */
  async learned() {
    const turn = this.turn;
    const answer = await get(path`/v1/users/${turn.user}/preference`);
    if (turn !== this.turn || answer.rounds < turn.shown) return; // who is quick has rated another meanwhile
    turn.shown = answer.rounds;
    const rounds = turn.visits.length;
    this.you.show({ answer, visits: turn.visits, note: this.source(answer, rounds) });
    this.tell(answer, rounds);
    const weights = this.basis(answer, rounds);
    if (weights === null) return;
    // One after the other, however quick the visitor is: the guest makes one visit for each of theirs.
    turn.entertained = turn.entertained.catch(() => {}).then(() => this.entertain(turn, weights, rounds));
    await turn.entertained;
  }

  source(answer, rounds) {
    if (!rounds) return "Before your first rating: what guests in general care about.";
    if (answer.source === "stated") return "The mean of what you said.";
    return this.mode === "before" ? "What your overall scores say, whatever you said." : "Learned from your overall scores, and from other guests.";
  }

  /** What the guest's taste is the opposite of, or null as long as there is nothing. */
  basis(answer, rounds) {
    const weights = Object.fromEntries(Object.entries(answer.objectives).map(([key, one]) => [key, one.weight]));
    const said = this.said.value;
    if (this.mode === "before" && favourite(said) !== null) {
      for (const key of Object.keys(said)) said[key] += 1e-6 * weights[key]; // of two that count alike, by the scores
      return rounds ? said : null;
    }
    const named = this.mode === "afterwards" && favourite(weights) !== null;
    return rounds >= (named ? 1 : GUEST_FROM) ? weights : null;
  }

  tell(answer, rounds) {
    const left = ENOUGH - rounds;
    this.bar.value = Math.min(rounds, ENOUGH);
    fill(this.count, left > 0 ? `${rounds} of ${ENOUGH} ratings` : `${rounds} ratings. Go on: the more, the surer.`);
    if (left > 0) {
      const more = left === 1 ? "one more" : `${left} more`;
      fill(this.words, rounds ? `Rate ${more}, and it tells you what it thinks.` : "Rate ten restaurants, and it tells you what you care about.");
      const [first] = shares(answer.objectives);
      fill(this.meanwhile, rounds >= GUEST_FROM && this.mode !== "afterwards" ? `So far it looks most like ${this.titles[first.name]}.` : "");
      return;
    }
    const { parts } = verdict({ titles: this.titles, answer, mode: this.mode, said: this.said.value });
    fill(this.words, ...parts.map((part) => (Array.isArray(part) ? el("strong", {}, part[0]) : part)));
  }

  /** Has the guest of the opposite taste visit as many restaurants as the visitor; a new one, where tastes have met. */
  async entertain(turn, weights, rounds) {
    if (turn !== this.turn) return;
    let { guest } = turn;
    if (guest === null || !isOpposite(guest.taste, weights)) {
      if (guest !== null) await send("DELETE", path`/v1/users/${guest.user}`);
      turn.guests += 1;
      guest = { user: `opposite ${turn.token} ${turn.guests}`, taste: opposite(weights), visits: [] };
      turn.guest = guest;
    }
    const { measures, world, scale, mode } = this;
    while (guest.visits.length < rounds) {
      const arms = offer(world, guest.visits.map((one) => one.restaurant.id));
      const known = mode === "before" ? { preference: guest.taste } : {};
      const decision = await post("/v1/decisions", { user: guest.user, arms, ...known });
      const restaurant = this.places.get(decision.arm);
      const rewards = visit(measures, restaurant);
      const overall = overallOf(measures, guest.taste, rewards, scale, world.noise);
      const stated = mode === "afterwards" ? { preference: guest.taste } : {};
      await post(path`/v1/decisions/${decision.id}/feedback`, { rewards, overall, ...stated });
      if (turn !== this.turn || guest !== turn.guest) return;
      guest.visits.push({ restaurant, overall });
    }
    const answer = await get(path`/v1/users/${guest.user}/preference`);
    if (turn !== this.turn || guest !== turn.guest) return;
    const [first] = Object.keys(guest.taste).sort((one, other) => guest.taste[other] - guest.taste[one]);
    const note = `Simulated: cares most about ${this.titles[first]}, and tells as much as you do.`;
    this.guest.show({ answer, visits: guest.visits, note });
    const latest = guest.visits.at(-1);
    if (rounds >= ENOUGH) fill(this.meanwhile, "Meanwhile the guest of the opposite taste was sent to ", name(latest.restaurant.name), ".");
  }
}

start(async (place) => {
  const [world, declared] = await Promise.all([get("/v1/demo/world"), get("/v1/objectives")]);
  const page = new Try(place, world, declared);
  await page.begin("never");
});
