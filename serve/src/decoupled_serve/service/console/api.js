// Calls to the service's public API.

const KEPT = "decoupled-key";

export class Problem extends Error {
  constructor(status, title, detail, request) {
    super(status >= 500 && request ? `${detail} (request ${request})` : detail);
    this.status = status;
    this.title = title;
  }
}

export const events = new EventTarget();
export const key = () => sessionStorage.getItem(KEPT);

export function setKey(value) {
  if (value) sessionStorage.setItem(KEPT, value);
  else sessionStorage.removeItem(KEPT);
  forget();
  events.dispatchEvent(new Event("key"));
}

let asked = null, granted = null; // the permissions of the key, requested once for each key

function forget() {
  asked = null;
  granted = null;
}

export async function access() {
  const mine = (asked ??= ask("v1/access"));
  try {
    const found = await mine;
    if (mine === asked) granted = found;
    events.dispatchEvent(new Event("access"));
    return found;
  } catch (error) {
    if (mine === asked) forget();
    throw error;
  }
}

// Whether to show what requires this role. The service itself enforces it.
export const may = (role) => granted !== null && granted.may.includes(role);
export const tenant = () => granted?.tenant ?? "";
export const mirrored = () => granted?.mirror ?? null; // the experiment of the mirror that this console belongs to
export const restriction = () =>
  granted === null || may("admin") ? "" : may("decide") ? "This key can read and decide"
    : may("read") ? "This key is read-only" : "This key can only label";

export async function open(path, { method = "GET", body, headers = {}, signal } = {}) {
  const sent = { ...headers };
  if (key()) sent.Authorization = `Bearer ${key()}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers: sent, signal, credentials: "omit", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    events.dispatchEvent(new Event("unreachable"));
    throw new Problem(0, "Unreachable", "The service does not respond. Is it running?");
  }
  if (response.ok) return response;
  if (response.status === 401) {
    forget();
    events.dispatchEvent(new Event("unauthorised"));
    throw new Problem(401, "Unauthorized", key()
      ? "This key is unknown or was revoked. Enter another one above."
      : "This service requires an API key. Enter one above.");
  }
  const problem = await response.json().catch(() => ({}));
  throw new Problem(response.status, problem.title ?? "Error", problem.detail ?? `The service answered ${response.status}.`, problem.request_id);
}

export async function ask(path, options) {
  const response = await open(path, options);
  const content = await response.json().catch(() => {
    throw new Problem(response.status, "Not JSON", "The response could not be read: it was cut off, or a proxy changed it. Try again.");
  });
  events.dispatchEvent(new Event("answered"));
  return content;
}

export const experimentPath = (name) => `v1/experiments/${encodeURIComponent(name)}`;

export async function experiments() {
  const found = [];
  let after = null;
  do {
    const page = await ask(`v1/experiments?limit=200${after ? `&after=${encodeURIComponent(after)}` : ""}`);
    found.push(...page.experiments);
    after = page.next;
  } while (after && found.length < 2000);
  return found;
}

// crypto.randomUUID does not exist over plain HTTP.
export function newKey() {
  const words = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(words, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
