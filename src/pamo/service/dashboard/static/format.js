// Numbers and times as people read them.

const whole = new Intl.NumberFormat();
const parts = new Map();

/** A number, rounded to what a reader can use: 12,345, 4.21, 0.052. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000 || (Number.isInteger(value) && digits === 3)) return whole.format(Math.round(value));
  if (size > 0 && size < 0.0005) return "≈ 0";
  if (!parts.has(digits)) {
    parts.set(digits, new Intl.NumberFormat(undefined, { maximumSignificantDigits: digits }));
  }
  return parts.get(digits).format(size < 0.1 ? Number(value.toFixed(3)) : value);
}

/** A number with as many digits behind the point as its neighbours have. */
export function fixed(value, digits = 2) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A share as a percentage: 7 %, 0.4 %, < 0.1 %. */
export function percent(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value < 100 && value > 99.9) return "> 99.9 %";
  return `${value.toLocaleString(undefined, { maximumFractionDigits: Math.abs(value) < 10 ? 1 : 0 })} %`;
}

/** A time of day, and the date where it is not today's. seconds: since 1970. */
export function time(seconds, { withSeconds = false } = {}) {
  const then = new Date(seconds * 1000);
  const clock = then.toLocaleTimeString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    ...(withSeconds ? { second: "2-digit" } : {}),
  });
  if (then.toDateString() === new Date().toDateString()) return clock;
  return `${then.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, ${clock}`;
}

/** A value from 0 (worst) to 1 (best) on its objective's own scale. */
export function raw(objective, value) {
  const share = objective.lower_is_better ? 1 - value : value;
  return objective.low + share * (objective.high - objective.low);
}

/** An estimate on its objective's own scale: its interval turns round with the scale. */
export function rawEstimate(objective, one) {
  const ends = [raw(objective, one.low), raw(objective, one.high)].map((end) =>
    Math.min(Math.max(end, objective.low), objective.high),
  );
  return { mean: raw(objective, one.mean), low: Math.min(...ends), high: Math.max(...ends) };
}

/** How many digits behind the point the values of a scale should have. */
export function digitsOf(objective) {
  const span = objective.high - objective.low;
  if (span >= 200) return 0;
  if (span >= 20) return 1;
  return 2;
}

/** A value on its objective's own scale, as text. */
export function onScale(objective, value) {
  return fixed(raw(objective, value), digitsOf(objective));
}
