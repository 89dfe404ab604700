// The demonstration's world in the page: what a visit is like, and a guest who is simulated. Nothing here asks the API.

/** A measure with its scale: what /v1/demo/world and /v1/objectives say of one objective. */
export function measuresOf(world, objectives) {
  return world.measures.map((one) => ({ ...objectives.find((other) => other.name === one.name), ...one }));
}

/** How good a score is, from 0, the worst, to 1, the best. */
export function goodness(measure, score) {
  const share = (score - measure.low) / (measure.high - measure.low);
  return measure.lower_is_better ? 1 - share : share;
}

/** A score as people say it: "17 €", and a word for it. */
export function told(measure, score) {
  const good = goodness(measure, score);
  const fifth = Math.min(Math.floor(good * measure.words.length), measure.words.length - 1);
  return { value: `${score.toLocaleString()} ${measure.unit}`, word: measure.words[fifth], good };
}

function gauss(mean, spread) {
  const radius = Math.sqrt(-2 * Math.log(1 - Math.random()));
  return mean + spread * radius * Math.cos(2 * Math.PI * Math.random());
}

/** What a visit to a restaurant is like: scores drawn around its means, in the steps in which they are told. */
export function visit(measures, restaurant) {
  const scores = {};
  for (const one of measures) {
    const drawn = Math.round(gauss(restaurant.means[one.name], one.spread) / one.step) * one.step;
    scores[one.name] = Math.min(Math.max(drawn, one.low), one.high);
  }
  return scores;
}

/** The overall score that a guest of this taste gives such a visit: a whole number of the scale. */
export function overallOf(measures, taste, scores, scale, noise) {
  const worth = measures.reduce((sum, one) => sum + taste[one.name] * goodness(one, scores[one.name]), 0);
  const points = Math.round(scale.low + (scale.high - scale.low) * gauss(worth, noise));
  return Math.min(Math.max(points, scale.low), scale.high);
}

/**
 * What speaks most for a restaurant: in what it is worth more to somebody than others are, and was good at this visit
 * too; null where there is no such measure. values: what it is worth by measure. scores: of the visit.
 */
export function strength(measures, restaurants, restaurant, values, scores) {
  let [best, most] = [null, 0];
  for (const one of restaurant ? measures : []) {
    const usual = restaurants.reduce((sum, other) => sum + goodness(one, other.means[one.name]), 0) / restaurants.length;
    const own = goodness(one, restaurant.means[one.name]);
    const more = (values[one.name] ?? 0) * (1 - usual / Math.max(own, 1e-9));
    if (more > most && goodness(one, scores[one.name]) >= Math.max(usual, 0.5)) [best, most] = [one.name, more];
  }
  return best;
}

const OPPOSITE = [0.45, 0.25, 0.15, 0.1, 0.05];

/** The opposite taste: what counts least comes first. */
export function opposite(weights) {
  const names = Object.keys(weights).sort((one, other) => weights[one] - weights[other]);
  return Object.fromEntries(names.map((name, place) => [name, OPPOSITE[place] ?? 0]));
}

/** Whether what this taste puts first is still among what counts little. */
export function isOpposite(taste, weights) {
  const [first] = Object.keys(taste).sort((one, other) => taste[other] - taste[one]);
  const below = Object.values(weights).filter((weight) => weight < weights[first]).length;
  return below < Object.keys(weights).length / 2;
}

/** Those that were not visited lately: what a guest can be offered. */
export function offer(world, seen) {
  const lately = new Set(seen.slice(-world.apart));
  const left = world.restaurants.filter((one) => !lately.has(one.id)).map((one) => one.id);
  return left.length ? left : world.restaurants.map((one) => one.id);
}
