// The client of pamo's service for browsers and Node: what to send, when to send it again, and what an answer means.
// Types are in index.d.ts; what the service knows is in api.js, which scripts/typescript_api.py writes.

import { CODES, ERRORS, OPERATIONS } from "./api.js";

const HERE = "http://127.0.0.1:8000";
const AGAIN = new Set([429, 502, 503, 504]); // answers that may be others a moment later

/** The root of every error of this client. */
export class PamoError extends Error {
  constructor(message, { code = "failed", field = null, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.field = field;
  }
}
export class InputError extends PamoError {}
export class UnknownDecisionError extends PamoError {}
export class ExpiredDecisionError extends PamoError {}
export class ConflictError extends PamoError {}
export class RefusedError extends PamoError {}
export class ServiceError extends PamoError {}

const KINDS = { InputError, UnknownDecisionError, ExpiredDecisionError, ConflictError, RefusedError };

/** Return the error that a code stands for, undefined for one that stands for none. */
function errorOf(code, message, field) {
  const kind = KINDS[ERRORS[code]];
  return kind && new kind(message, { code, field });
}

export class Client {
  #key;
  #settings;

  constructor(url, settings = {}) {
    const environment = globalThis.process?.env ?? {};
    this.url = checkedUrl(url ?? (environment.PAMO_URL || globalThis.location?.origin || HERE));
    this.#key = checkedKey(settings.key === undefined ? environment.PAMO_KEY || null : settings.key);
    const {
      timeout = 10_000,
      retries = 4,
      backoff = 100,
      longestPause = 30_000,
      fetch = (...given) => globalThis.fetch(...given), // a browser's own has to be called on its window
      sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds)),
      random = Math.random,
    } = settings;
    for (const [name, value] of Object.entries({ timeout, retries, backoff, longestPause })) {
      if (!(Number.isFinite(value) && value >= 0) || (name === "retries" && !Number.isInteger(value))) {
        throw new InputError(`expected ${name} to be a number from 0 on, got ${told(value)}`, { code: "invalid" });
      }
    }
    this.#settings = { timeout, retries, backoff, longestPause, fetch, sleep, random };
  }

  // Decisions and feedback

  async decide(user, { key, ...offer } = {}) {
    const given = key ?? newKey();
    if (!/^[!-~]([ -~]*[!-~])?$/.test(given)) {
      // A header cannot carry it. The requests of a batch have their keys in the body.
      return (await this.decideMany([{ user, ...offer, key: given }]))[0];
    }
    return this.call("decide", { body: { user, ...offer }, key: given });
  }

  async decideMany(requests) {
    const keyed = [...requests]
      .map((one) => (typeof one === "string" ? { user: one } : one))
      .map((one) => ({ ...one, key: one.key ?? newKey() }));
    return keyed.length ? (await this.call("decideMany", { body: { requests: keyed } })).decisions : [];
  }

  feedback(decision, came) {
    return this.call("giveFeedback", { id: idOf(decision), body: { ...came } });
  }

  async feedbackMany(items) {
    const feedback = [...items];
    if (!feedback.length) return [];
    const { results } = await this.call("giveFeedbackToMany", { body: { feedback } });
    return results.map((one) => ({ ...one, error: refusal(one) }));
  }

  decision(id) {
    return this.call("getDecision", { id });
  }

  async explain(decision) {
    return (await this.call("getDecision", { id: idOf(decision) })).explanation;
  }

  // Users

  preference(user) {
    return this.call("getPreference", { id: user });
  }

  exportUser(user) {
    return this.call("exportUser", { id: user });
  }

  async eraseUser(user) {
    await this.call("eraseUser", { id: user });
  }

  // Arms

  addArm(arm, known = {}) {
    return this.call("putArm", { id: arm, body: { ...known } });
  }

  async addArms(arms) {
    const several = [...arms].map((one) => (typeof one === "string" ? { id: one } : one));
    return several.length ? (await this.call("putArms", { body: { arms: several } })).arms : [];
  }

  retireArm(arm) {
    return this.call("retireArm", { id: arm });
  }

  arm(id) {
    return this.call("getArm", { id });
  }

  async arms() {
    return (await this.call("getArms")).arms;
  }

  async front(query = {}) {
    return (await this.call("getFront", { query })).arms;
  }

  async declareFeatures(features, { of = "arms" } = {}) {
    const declared = [...features].map((one) => (typeof one === "string" ? { name: one } : one));
    return (await this.call("declareFeatures", { body: { features: declared, of } })).features;
  }

  // Experiments

  startExperiment(name, how = {}) {
    return this.call("startExperiment", { body: { name, ...how } });
  }

  endExperiment() {
    return this.call("endExperiment");
  }

  async experiment() {
    return (await this.call("getExperiment")).experiment;
  }

  // The service

  async objectives() {
    return (await this.call("getObjectives")).objectives;
  }

  async overall() {
    return (await this.call("getObjectives")).overall;
  }

  async features({ of = "arms" } = {}) {
    const told = await this.call("getObjectives");
    return of === "arms" ? told.features : told.user_features;
  }

  statistics() {
    return this.call("getStatistics");
  }

  health() {
    return this.#succeeds("getHealth");
  }

  ready() {
    return this.#succeeds("getReadiness");
  }

  /** Ask for any operation of the description by its name. */
  async call(operation, given = {}) {
    const request = this.#request(operation, given);
    const { retries, sleep } = this.#settings;
    for (let attempts = 1; ; attempts++) {
      const outcome = await this.#send(request);
      if (outcome.response?.ok) return this.#read(request, outcome);
      const again = outcome.error || AGAIN.has(outcome.response.status);
      const pause = again && attempts <= retries ? this.#pause(attempts, outcome.response) : null;
      if (pause === null) throw this.#failure(attempts, outcome);
      await sleep(pause);
    }
  }

  async #succeeds(operation) {
    const { response } = await this.#send(this.#request(operation, {}));
    return response?.ok ?? false;
  }

  #request(operation, { id, query = {}, body, key }) {
    const found = Object.hasOwn(OPERATIONS, operation) && OPERATIONS[operation];
    if (!found) throw new InputError(`expected an operation of pamo's service, got ${told(operation)}`, { code: "invalid" });
    const [method, path] = found;
    const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined)).toString();
    const headers = { Accept: "application/json" };
    if (this.#key !== null) headers.Authorization = `Bearer ${this.#key}`;
    if (key !== undefined) headers["Idempotency-Key"] = key;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return {
      path: path.replace("{id}", () => segment(id)) + (asked && `?${asked}`),
      method,
      headers,
      body: body === undefined ? undefined : json(body),
    };
  }

  /** Make one attempt. Its time covers the answer's last byte. */
  async #send({ path, method, headers, body }) {
    const control = new AbortController();
    const { timeout, fetch } = this.#settings;
    const timer = setTimeout(() => control.abort(new Error(`no answer in ${timeout} ms`)), timeout);
    try {
      const response = await fetch(this.url + path, { method, headers, body, signal: control.signal, redirect: "manual" });
      return { response, text: await response.text() };
    } catch (error) {
      return { error: control.signal.aborted ? control.signal.reason : error };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Return the milliseconds before the next attempt, null if the service asks for more than there are. */
  #pause(attempts, response) {
    const { backoff, longestPause, random } = this.#settings;
    const asked = askedPause(response?.headers.get("Retry-After") ?? null);
    if (asked !== null && asked > longestPause) return null;
    const longest = Math.min(backoff * 2 ** Math.min(attempts - 1, 60), longestPause);
    if (asked === null) return longest * (0.5 + random() / 2);
    return Math.min(asked + (longest * random()) / 2, longestPause);
  }

  #read({ path }, { response, text }) {
    if (response.status === 204) return undefined;
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new ServiceError(
        `the service at ${this.url} answered ${path} with something else than expected: ` +
          "check the URL, and that client and service are of the same version",
        { code: "unavailable", cause },
      );
    }
  }

  #failure(attempts, { response, text, error }) {
    const tried = attempts > 1 ? `${attempts} attempts` : "1 attempt";
    if (!response) {
      const why = error.cause?.code ?? error.cause?.message ?? error.message;
      return new ServiceError(
        `the service at ${this.url} did not answer in ${tried} (${why}): check the URL, and that the service runs there`,
        { code: "unavailable", cause: error },
      );
    }
    const { status } = response;
    if (response.type === "opaqueredirect" || response.headers.has("Location")) {
      const where = response.headers.get("Location") ?? "another URL"; // which a browser does not tell
      return new ServiceError(`the service at ${this.url} sends elsewhere, to ${where}: use that URL`, {
        code: "unavailable",
      });
    }
    const problem = problemOf(response, text);
    const detail = problem.detail || problem.title;
    const code = problem.code || (status === 404 ? undefined : CODES[status]); // somebody on the way may answer
    const found = errorOf(code, detail || `the service at ${this.url} answered ${status} without saying why`, problem.field);
    if (found) return found;
    const message = detail
      ? `the service at ${this.url} answered ${status} after ${tried}: ${detail}`
      : `expected an answer of pamo's service at ${this.url}, got ${status} after ${tried}: ` +
        "check the URL, and that the service runs there";
    return new ServiceError(message, { code: code ?? "unavailable" });
  }
}

/** Return what `feedback` would have thrown for one of many, null if it counts. */
function refusal({ id, status, code, detail }) {
  if (status === "recorded" || status === "duplicate") return null;
  const reason = detail || `the feedback to decision ${id} was refused: ${status}`;
  return errorOf(code, reason) ?? new PamoError(reason, { code });
}

function problemOf(response, text) {
  if (!response.headers.get("Content-Type")?.startsWith("application/problem+json")) return {};
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** Return the milliseconds that a Retry-After header asks for, null if it asks for none. */
function askedPause(header) {
  if (header === null) return null;
  const seconds = header.trim() === "" ? NaN : Number(header);
  const asked = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1000;
  return Number.isFinite(asked) ? Math.max(asked, 0) : null;
}

function idOf(decision) {
  return decision !== null && typeof decision === "object" ? decision.id : decision;
}

/** Return an id as one segment of a path. */
function segment(id) {
  if (typeof id !== "string" || id === "") throw new InputError(`expected an id to be text, got ${told(id)}`, { code: "invalid" });
  if (id === "." || id === "..") {
    // However they are written, a URL takes them for this folder and the one above, and leads to another path.
    throw new InputError(`expected an id that a URL can carry, got ${told(id)}`, { code: "invalid" });
  }
  try {
    return encodeURIComponent(id);
  } catch (cause) {
    throw new InputError(`expected an id to be text without half a surrogate pair, got ${told(id)}`, { code: "invalid", cause });
  }
}

/** Return a body as JSON; what JSON would quietly turn into null is refused. */
function json(body) {
  const where = new Map([[body, ""]]);
  return JSON.stringify(body, function (name, value) {
    const at = Array.isArray(this) ? `${where.get(this)}[${name}]` : [where.get(this), name].filter(Boolean).join(".");
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new InputError(`expected ${at} to be a finite number, got ${value}: leave out what is not known`, {
        code: "invalid",
        field: at,
      });
    }
    if (value !== null && typeof value === "object") where.set(value, at);
    return value;
  });
}

/** Return a key for a request that came without one, so that it is the same however often it is sent. */
function newKey() {
  // randomUUID would do, but a browser has it on secure pages only.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
}

function checkedUrl(given) {
  let url;
  try {
    url = new URL(given, globalThis.location?.href); // on a page, "/pamo" is a path of its own server
  } catch {
    url = null;
  }
  if (!/^https?:$/.test(url?.protocol ?? "") || url.search || url.hash || url.username) {
    throw new InputError(`expected the service's URL, such as ${HERE}, got ${told(given)}`, { code: "invalid" });
  }
  return url.href.replace(/\/+$/, "");
}

function checkedKey(given) {
  if (given === null || (typeof given === "string" && /^[!-~]+$/.test(given))) return given;
  throw new InputError("expected the API key to be text without spaces", { code: "invalid" }); // never shown
}

function told(value) {
  return (typeof value === "string" ? JSON.stringify(value) : String(value)).slice(0, 80);
}
