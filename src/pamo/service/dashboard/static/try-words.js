// What is thought of somebody, in words, and how sure that is.

/** Weights as shares of all of them, with their intervals; a weight below 0 counts as 0. */
export function shares(objectives) {
  const total = Object.values(objectives).reduce((sum, one) => sum + Math.max(one.weight, 0), 0) || 1;
  const share = (value) => Math.max(value, 0) / total;
  return Object.entries(objectives)
    .map(([name, one]) => ({ name, share: share(one.weight), low: share(one.low), high: share(one.high) }))
    .sort((one, other) => other.share - one.share);
}

function below(z) {
  // The normal distribution, by Abramowitz & Stegun 26.2.17: to seven digits.
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const tail =
    (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) *
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return z > 0 ? 1 - tail : tail;
}

/** The chance that an objective has the largest weight of all, each being normal about as wide as its interval. */
export function chanceOfFirst(objectives, name) {
  const spread = (one) => Math.max((one.high - one.weight) / 1.96, 1e-9);
  const { [name]: own, ...others } = objectives;
  const step = 0.05;
  let [chance, whole] = [0, 0];
  for (let z = -5; z <= 5; z += step) {
    const density = Math.exp((-z * z) / 2);
    const at = own.weight + z * spread(own);
    whole += density;
    chance += Object.values(others).reduce((product, one) => product * below((at - one.weight) / spread(one)), density);
  }
  return chance / whole;
}

const UNSURE = 0.6; // a chance below it is not told as a finding
const LITTLE = 0.08; // a share below it hardly counts

/** A chance in words. */
export function sureness(chance) {
  if (chance >= 0.95) return "very sure";
  if (chance >= 0.8) return "fairly sure";
  return "not so sure";
}

const ofHundred = (share) => `about ${Math.round(100 * share)} of 100`;
const inHundred = (chance) => `${Math.min(Math.round(100 * chance), 99)} in 100`;

/** Named most, with a lead over the next; null where there is no such objective. */
export function favourite(weights) {
  const [first, second] = Object.entries(weights).sort(([, one], [, other]) => other - one);
  return first[1] > second[1] ? first[0] : null;
}

/**
 * What to tell somebody. titles: by objective, "low prices". answer: /v1/users/{id}/preference. mode: "never",
 * "afterwards" or "before"; said: the weights given before. Returns {first, chance, parts}, each part a text, or [text]
 * where it is to stand out.
 */
export function verdict({ titles, answer, mode, said }) {
  const [first, second, ...rest] = shares(answer.objectives);
  const chance = chanceOfFirst(answer.objectives, first.name);
  const told = { titles, rounds: answer.rounds, first, second, last: rest.at(-1), chance };
  const parts = mode === "afterwards" ? fromStatements(told) : fromScores(told);
  if (mode === "before") parts.push(compared(titles, favourite(said), first.name));
  return { first: first.name, chance, parts };
}

function fromStatements({ titles, rounds, first, second }) {
  const start = `After ${rounds} ratings, going by what you said, you `;
  if (first.share - second.share < 0.02) return [`${start}have no favourite.`];
  return [`${start}care most about `, [titles[first.name]], ` (${ofHundred(first.share)}), then about ${titles[second.name]} (${ofHundred(second.share)}).`];
}

function fromScores({ titles, rounds, first, second, last, chance }) {
  const [best, next, least] = [first, second, last].map((one) => titles[one.name]);
  if (chance < UNSURE) {
    return [
      `After ${rounds} ratings pamo is not sure yet. Going by your scores you care most about `,
      [best],
      ` (${inHundred(chance)}), but it may well be ${next}. A few more ratings will tell.`,
    ];
  }
  const plural = least.endsWith("s") ? "" : "s";
  return [
    `After ${rounds} ratings, going by your scores, pamo thinks that you care most about `,
    [best],
    ` (${ofHundred(first.share)}), then about ${next} (${ofHundred(second.share)}). `,
    last.share < LITTLE ? `${capital(least)} hardly count${plural} for you. ` : "",
    `It is ${sureness(chance)} of the first: ${inHundred(chance)}.`,
  ];
}

function compared(titles, named, first) {
  if (named === null) return " You yourself named no favourite.";
  return named === first ? " That is what you said, too." : ` You yourself said ${titles[named]}.`;
}

/** The first letter as a capital. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
