// Axes: from values to pixels, and the round numbers and times at which they are labelled.

/** A linear scale. A domain may run backwards, for scales on which less is better. */
export function linear([from, to], [start, end]) {
  const span = to - from || 1;
  const scale = (value) => start + ((value - from) / span) * (end - start);
  scale.invert = (pixel) => from + ((pixel - start) / (end - start || 1)) * span;
  scale.domain = [from, to];
  return scale;
}

/** A span below which labels of twelve digits do not tell numbers apart, nor counting steps gets from one to the next. */
const leastSpan = (low, high) => Math.max(Math.abs(low), Math.abs(high)) * 1e-9;

/** Round numbers within a domain, about so many: steps of 1, 2 or 5 times a power of ten. */
export function ticks([from, to], wanted) {
  const [low, high] = from < to ? [from, to] : [to, from];
  const rough = (high - low) / Math.max(wanted, 1);
  if (!(high - low > leastSpan(low, high))) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.7);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place <= Math.floor(high / step + 1e-9); place += 1) {
    found.push(Number((place * step).toPrecision(12)));
  }
  return found;
}

/** The least and the greatest of values, with some room around them. */
export function extent(values, { room = 0.06, within = null } = {}) {
  const known = values.filter((value) => Number.isFinite(value));
  if (!known.length) return within ?? [0, 1];
  let low = Math.min(...known);
  let high = Math.max(...known);
  const space = (high - low > leastSpan(low, high) ? high - low : Math.abs(high) || 1) * room;
  low -= space;
  high += space;
  return within ? [Math.max(low, Math.min(...within)), Math.min(high, Math.max(...within))] : [low, high];
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/** Round local times within a domain of seconds since 1970. */
export function timeTicks([from, to], wanted) {
  const rough = (to - from) / Math.max(wanted, 1);
  const step = STEPS.find((one) => one >= rough) ?? Math.ceil(rough / 604800) * 604800;
  const offset = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) found.push(at);
  return found;
}

/** A time's label: as much of it as the distance between the labels calls for. */
export function timeLabel(at, [from, to]) {
  const date = new Date(at * 1000);
  if (to - from > 86400 * 2) return date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const parts = { hour: "2-digit", minute: "2-digit" };
  if (to - from < 600) parts.second = "2-digit";
  return date.toLocaleTimeString(undefined, parts);
}

/** The digits behind the point that tell these numbers apart. */
export function labeller(numbers) {
  const step = numbers.length > 1 ? Math.abs(numbers[1] - numbers[0]) : Math.abs(numbers[0]) || 1;
  const digits = Math.min(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)), 6);
  return (value) =>
    value.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
