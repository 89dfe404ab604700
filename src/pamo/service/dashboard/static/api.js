// The public API, asked with the visitor's key where one is needed. The key stays in this tab's session.

import { base, el, fill } from "./dom.js";

const KEY = `pamo-key${base}`; // of each project another one
const needed = document.documentElement.dataset.keys === "needed";

let key = null;
try {
  key = sessionStorage.getItem(KEY);
} catch {
  // No storage: the key lasts as long as the page.
}

/** What the API refused with: its status and its sentence. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

function keep(value) {
  key = value;
  try {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
  } catch {
    // As above.
  }
}

async function ask(path, options = {}) {
  const headers = { ...(key ? { authorization: `Bearer ${key}` } : {}), ...options.headers };
  let answer;
  try {
    answer = await fetch(base + path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service cannot be reached at the moment.");
  }
  if (answer.ok) return answer;
  let detail = `${answer.status} ${answer.statusText}`;
  try {
    detail = (await answer.json()).detail ?? detail;
  } catch {
    // It was no problem in JSON: the status has to do.
  }
  if (answer.status === 401) keep(null);
  throw new Problem(answer.status, detail);
}

/** The path of the API with ids percent-encoded: path`/v1/users/${id}/preference`. */
export function path(parts, ...ids) {
  return parts.reduce((whole, part, place) => whole + encodeURIComponent(ids[place - 1]) + part);
}

/** GET: the answer's values. parameters that are undefined or "" are left out. */
export async function get(where, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return (await ask(query ? `${where}?${query}` : where, { signal })).json();
}

/** POST, PUT or DELETE with a JSON body. */
export async function send(method, where, body = undefined, { signal, headers } = {}) {
  const answer = await ask(where, {
    method,
    signal,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return answer.status === 204 ? null : answer.json();
}

/** POST with a JSON body. */
export function post(where, body, options) {
  return send("POST", where, body, options);
}

/**
 * Server-sent events, read by fetch since an EventSource cannot carry a key. on: {name: (data) => …}; state: told "live"
 * or "waiting". It connects anew by itself, later each time, until the signal ends it.
 */
export async function stream(where, on, state = () => {}, signal = undefined) {
  let pause = 1000;
  while (!signal?.aborted) {
    try {
      const answer = await ask(where, { signal, headers: { accept: "text/event-stream" } });
      state("live");
      pause = 1000;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const event of events) hand(event, on);
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof Problem && [401, 403].includes(error.status)) throw error;
    }
    state("waiting");
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 30000);
  }
}

function hand(text, on) {
  let kind = "message";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5));
  }
  if (data.length && on[kind]) on[kind](JSON.parse(data.join("\n")));
}

/** Shows what went wrong, in a sentence; nothing takes it away. */
export function trouble(error) {
  const place = document.getElementById("trouble");
  if (!error) {
    if (place.hasChildNodes()) fill(place);
    return;
  }
  if (error.name === "AbortError") return;
  if (error.status === 401 && needed) {
    start.again?.(error.message);
    return;
  }
  const known = error instanceof Problem;
  if (!known) console.error(error);
  fill(place, el("p", { class: "notice bad" }, known ? sentence(error.message) : "Something went wrong on this page."));
}

function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

/**
 * Starts a view: at once where no key is needed, otherwise after signing in. view(place, signal) fills the place; what it
 * throws is shown. The signal ends what it began when the visitor signs out.
 */
export function start(view) {
  const place = document.getElementById("view");
  const out = document.getElementById("sign-out");
  let control = new AbortController();

  const run = async () => {
    trouble(null);
    control = new AbortController();
    out.hidden = !needed;
    fill(place);
    try {
      await view(place, control.signal);
    } catch (error) {
      trouble(error);
    }
  };
  const signIn = (message = "") => {
    control.abort();
    keep(null);
    out.hidden = true;
    trouble(null);
    const error = el("p", { class: "bad", role: "alert" }, message ? sentence(message) : "");
    const field = el("input", { id: "key", type: "password", required: true, autocomplete: "off", spellcheck: "false" });
    const form = el(
      "form",
      { class: "card sign-in" },
      el("h2", {}, "Sign in"),
      el("p", { class: "soft" }, "This service wants a key. It is kept in this tab, and sent to this service only."),
      el("label", { for: "key" }, "Key"),
      field,
      error,
      el("button", { type: "submit", class: "main" }, "Sign in"),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      keep(field.value.trim());
      try {
        await get("/v1/objectives");
      } catch (refused) {
        keep(null);
        error.textContent = sentence(refused.message);
        field.select();
        return;
      }
      run();
    });
    fill(place, form);
    field.focus();
  };
  start.again = signIn;
  out.addEventListener("click", () => signIn());
  if (needed && !key) signIn();
  else run();
}

/** Calls what refreshes a view now and every so many milliseconds, while somebody can see it. */
export function every(milliseconds, refresh, signal) {
  let timer = 0;
  let busy = false;
  const turn = async () => {
    if (busy || signal.aborted) return;
    busy = true;
    try {
      await refresh();
      trouble(null);
    } catch (error) {
      if (!signal.aborted) trouble(error);
    } finally {
      busy = false;
    }
  };
  const wake = () => {
    clearInterval(timer);
    if (document.visibilityState === "visible" && !signal.aborted) {
      turn();
      timer = setInterval(turn, milliseconds);
    }
  };
  document.addEventListener("visibilitychange", wake, { signal });
  signal.addEventListener("abort", () => clearInterval(timer));
  wake();
  return turn;
}
