// One request: sent until it succeeds, with the same body and the same key in every attempt.

import { Compiling, ServiceError, TEMPORARY, Unauthorized, Unreachable, errorFrom } from "./errors.js";

/** How often to try, and how long to wait between attempts. */
export interface Retries {
  /** The most attempts for one request; 6 by default. */
  attempts: number;
  /** Seconds to wait after the first attempt; waits double from there, with full jitter. 0.1 by default. */
  firstSeconds: number;
  /** The longest wait; 5 seconds by default. */
  mostSeconds: number;
  /** Seconds to wait while the service compiles a policy, 600 by default. They do not count as attempts. */
  compilingSeconds: number;
}

export const RETRIES: Retries = { attempts: 6, firstSeconds: 0.1, mostSeconds: 5, compilingSeconds: 600 };

/** A service, and how to call it. */
export interface Endpoint {
  url: string;
  key: string | undefined;
  retries: Retries;
  timeoutSeconds: number;
  notify: (message: string) => void;
  fetch: typeof fetch;
}

/** A request. Sending any request of this service twice has the effect of sending it once. */
export interface Sent {
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
}

const LONGEST_WAIT = 60; // seconds that a service may ask for

/** Seconds to wait after an attempt: never less than the service asked for. */
export const pause = (retries: Retries, attempt: number, retryAfter: number): number =>
  retryAfter + Math.random() * Math.min(retries.mostSeconds, retries.firstSeconds * 2 ** (attempt - 1));

export const sleep = (seconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** The seconds that a response asks to wait, 60 at most. */
export function retryAfter(response: Response): number {
  const text = response.headers.get("retry-after") ?? "";
  return /^\d+$/.test(text) ? Math.min(Number(text), LONGEST_WAIT) : 0;
}

/** Waits while the service compiles a policy, and tells the reason once. */
export class CompileWait {
  #told = false;
  #until: number;

  constructor(readonly endpoint: Endpoint) {
    this.#until = performance.now() + 1000 * endpoint.retries.compilingSeconds;
  }

  get over(): boolean {
    return performance.now() >= this.#until;
  }

  async pause(seconds: number, reason: string): Promise<void> {
    if (!this.#told) this.endpoint.notify(reason);
    this.#told = true;
    await sleep(pause(this.endpoint.retries, 1, seconds));
  }
}

/** A response whose body was read within the timeout. */
export interface Answer {
  response: Response;
  blob: Blob;
}

/** Send a request until it succeeds; throw the error if it is not temporary, or after the last attempt. */
export async function send(sent: Sent, endpoint: Endpoint): Promise<Answer> {
  const { retries } = endpoint;
  const target = `${sent.method} ${endpoint.url}${sent.path}`;
  let error: ServiceError = new Unreachable(`${target}: no attempt is allowed; set retries.attempts to 1 or more`, 503);
  const compileWait = new CompileWait(endpoint);
  for (let attempt = 1; attempt <= retries.attempts; attempt++) {
    let seconds = 0;
    try {
      const answer = await once(sent, endpoint);
      if (answer.response.ok) return answer;
      error = await errorIn(answer, endpoint);
      seconds = retryAfter(answer.response);
    } catch (failure) {
      const reason = failure instanceof Error ? describe(failure) : String(failure);
      error = new Unreachable(
        `${target}: no answer (${reason}); is \`decoupled serve\` running there? pass its address to the client`, 503,
      );
    }
    if (!TEMPORARY.includes(error.status)) throw error;
    if (error instanceof Compiling && !compileWait.over) {
      attempt--;
      await compileWait.pause(seconds, error.message);
    } else if (attempt < retries.attempts) {
      await sleep(pause(retries, attempt, seconds));
    }
  }
  throw error;
}

async function once(sent: Sent, endpoint: Endpoint): Promise<Answer> {
  const headers: Record<string, string> = { ...sent.headers };
  if (endpoint.key) headers["Authorization"] = `Bearer ${endpoint.key}`;
  if (sent.body !== undefined) headers["Content-Type"] = "application/json";
  const response = await endpoint.fetch(endpoint.url + sent.path, {
    method: sent.method,
    headers,
    redirect: "manual", // a key must not go elsewhere
    signal: AbortSignal.timeout(1000 * endpoint.timeoutSeconds),
    ...(sent.body === undefined ? {} : { body: JSON.stringify(sent.body) }),
  });
  return { response, blob: await response.blob() };
}

async function errorIn({ response, blob }: Answer, endpoint: Endpoint): Promise<ServiceError> {
  const { status } = response;
  if (status === 401) {
    // The service's own message is about the header, which the caller of a client never sets.
    const rule = endpoint.key ? `is unknown to ${endpoint.url}, or revoked` : `is missing; ${endpoint.url} needs one`;
    return new Unauthorized(`key: ${rule}; pass { key } to the client, or set DECOUPLED_KEY`, 401);
  }
  const text = await blob.text();
  try {
    const problem = JSON.parse(text);
    if (typeof problem.detail === "string") return errorFrom(status, problem);
  } catch {
    // Not from the service: a proxy in between, most likely.
  }
  return errorFrom(status, { detail: `status ${status}: ${text.slice(0, 200)}` });
}

/** Node's fetch says only "fetch failed", and keeps the reason in the cause. */
const describe = (failure: Error): string =>
  failure.cause instanceof Error ? `${failure.message}: ${describe(failure.cause)}` : `${failure.name}: ${failure.message}`;

/** Send a request and read the JSON of its answer. */
export async function sendForJson(sent: Sent, endpoint: Endpoint): Promise<{ response: Response; content: any }> {
  const { response, blob } = await send(sent, endpoint);
  try {
    return { response, content: JSON.parse(await blob.text()) };
  } catch {
    throw new ServiceError(`${sent.method} ${endpoint.url}${sent.path}: the answer is not JSON; is it a decision service?`);
  }
}
