// `Client`: every operation of the service, typed by its OpenAPI document.

import type {
  BudgetIn, DecideIn, DecisionOut, EvaluationOut, ExperimentIn, ExperimentList, ExperimentOut, FeedbackIn, FeedbackItem,
  GateOut, GuardrailsIn, HistoryOut, LabelIn, LabelQueueOut, Operations, SegmentsOut, StateOut, VerdictOut,
} from "./api.js";
import { Compiling, NotCompiled, ParameterError, ServiceError, TEMPORARY, UndeliveredFeedback, isNotDelivered } from "./errors.js";
import { CompileWait, RETRIES, retryAfter, send, sendForJson, type Endpoint, type Retries, type Sent } from "./exchange.js";
import { Outbox, checkedItem, deliver } from "./feedback.js";

export type Arm = string | number;
export type Decision = DecisionOut;

export interface ClientOptions {
  /** The API key; DECOUPLED_KEY by default, where there is an environment. */
  key?: string | undefined;
  /** Keeps feedback that could not be delivered, until `flush`. */
  outbox?: Outbox | undefined;
  retries?: Partial<Retries>;
  /** Seconds for each attempt, 10 by default. */
  timeoutSeconds?: number;
  /** Told once why a call waits for the compiler; console.warn by default. */
  notify?: (message: string) => void;
  /** Another fetch, such as one with a proxy. */
  fetch?: typeof fetch;
}

/**
 * What to decide. `key` is a session or a user that is served the same arm again, `context` what is known of the request.
 * `idempotencyKey` is the Idempotency-Key, a new one by default: the same one gives the same decision again.
 */
export type DecideOptions = Omit<DecideIn, "count"> & { idempotencyKey?: string };

/** What an arm at a gate is compared with, and by how much. */
export type GateOptions = Omit<Operations["GET /v1/experiments/{name}/gate"]["query"], "arm" | "closed">;

/** The result of sending an outbox. */
export interface Flushed {
  delivered: Decision[];
  /** Feedback that the service refused for good. It is no longer in the outbox. */
  refused: { item: FeedbackItem; error: ServiceError }[];
  /** How many items are still in the outbox. */
  left: number;
}

type Request<K extends keyof Operations> = { headers?: Record<string, string> }
  & (Operations[K]["path"] extends infer P ? (keyof P extends never ? { path?: never } : { path: P }) : never)
  & (undefined extends Operations[K]["body"] ? { body?: Operations[K]["body"] } : { body: Operations[K]["body"] })
  & { query?: Operations[K]["query"] };

/** A client of the decision service. It can be shared: calls do not wait for each other. */
export class Client {
  /** The address of the service, without a user and password that it may have held. */
  readonly url: string;
  readonly outbox: Outbox | undefined;
  readonly #endpoint: Endpoint;

  constructor(url: string, options: ClientOptions = {}) {
    this.url = checkedUrl(url);
    this.outbox = options.outbox;
    this.#endpoint = {
      url: this.url,
      key: options.key ?? globalThis.process?.env?.["DECOUPLED_KEY"],
      retries: { ...RETRIES, ...options.retries },
      timeoutSeconds: options.timeoutSeconds ?? 10,
      notify: options.notify ?? ((message) => console.warn(message)),
      fetch: options.fetch ?? ((...given) => fetch(...given)),
    };
  }

  /** Send any request of the document, with retries. The other methods are made of it. */
  async call<K extends keyof Operations>(operation: K, request: Request<K>): Promise<Operations[K]["response"]> {
    return (await sendForJson(prepared(operation, request), this.#endpoint)).content;
  }

  // Experiments

  /** Create an experiment, and wait until its policy is compiled. The same settings again change nothing. */
  async create(name: string, settings: ExperimentIn): Promise<ExperimentOut> {
    const compileWait = new CompileWait(this.#endpoint);
    const sent = prepared("PUT /v1/experiments/{name}", { path: { name }, body: settings });
    for (;;) {
      const { response, content } = await sendForJson(sent, this.#endpoint);
      if (content.status === "failed") throw new NotCompiled(String(content.problem));
      if (response.status !== 202) return content;
      if (compileWait.over) {
        throw new Compiling(
          `experiment '${name}': was created, but its policy is not compiled after ` +
          `${this.#endpoint.retries.compilingSeconds} s; to wait longer, create it again with the same settings`, 503,
        );
      }
      await compileWait.pause(retryAfter(response), `the service is compiling ${content.policy_label} for experiment '${name}'`);
    }
  }

  /** One experiment: its settings, arms and status. */
  experiment(name: string): Promise<ExperimentOut> {
    return this.call("GET /v1/experiments/{name}", { path: { name } });
  }

  /** A page of experiments, ordered by name; `next` is the `after` of the following page. */
  experiments(query: Operations["GET /v1/experiments"]["query"] = {}): Promise<ExperimentList> {
    return this.call("GET /v1/experiments", { query });
  }

  /** End an experiment: it makes no more decisions, and still takes feedback. */
  archive(name: string): Promise<ExperimentOut> {
    return this.call("POST /v1/experiments/{name}/archive", { path: { name } });
  }

  addArms(name: string, arms: Arm[]): Promise<ExperimentOut> {
    return this.call("POST /v1/experiments/{name}/arms", { path: { name }, body: { arms } });
  }

  /** Retire arms: no later decision names them. */
  retireArms(name: string, arms: Arm[]): Promise<ExperimentOut> {
    return this.call("POST /v1/experiments/{name}/arms/retire", { path: { name }, body: { arms } });
  }

  /** Change what is served, whatever the policy draws. Guardrails that are left out stay as they are. */
  changeGuardrails(name: string, changes: GuardrailsIn): Promise<ExperimentOut> {
    return this.call("PATCH /v1/experiments/{name}/guardrails", { path: { name }, body: changes });
  }

  /** Exploit this arm in every decision from now on: the kill switch. Exploring and learning go on. */
  pin(name: string, arm: Arm): Promise<ExperimentOut> {
    return this.changeGuardrails(name, { pinned: arm });
  }

  /** Let the policy choose again. */
  unpin(name: string): Promise<ExperimentOut> {
    return this.changeGuardrails(name, { pinned: null });
  }

  /** Set the arms that are down, such as those that fail a health check; all others are up. */
  setDown(name: string, arms: Arm[]): Promise<ExperimentOut> {
    return this.call("PUT /v1/experiments/{name}/down", { path: { name }, body: { arms } });
  }

  /** Set how much may be explored; without limits, as much as is asked for. */
  setBudget(name: string, limits: BudgetIn): Promise<ExperimentOut> {
    return this.call("PUT /v1/experiments/{name}/budget", { path: { name }, body: limits });
  }

  // Decisions

  /** A decision: use `exploit`, try `explore`, and send back the loss of `explore`. With `count`, that many. */
  decide(name: string, options?: DecideOptions & { count?: undefined }): Promise<Decision>;
  decide(name: string, options: DecideOptions & { count: number }): Promise<Decision[]>;
  async decide(name: string, options: DecideOptions & { count?: number | undefined } = {}): Promise<Decision | Decision[]> {
    const { idempotencyKey, ...body } = options;
    // Every attempt carries the same one, so a lost answer does not draw a second decision.
    const headers = { "Idempotency-Key": idempotencyKey ?? crypto.randomUUID() };
    const found = await this.call("POST /v1/experiments/{name}/decisions", { path: { name }, body, headers });
    return "decisions" in found ? found.decisions : found;
  }

  /** A decision with its present status. */
  decision(id: string): Promise<Decision> {
    return this.call("GET /v1/decisions/{id}", { path: { id } });
  }

  /**
   * Send the loss, or the reward, of the arm that a decision *explored*, or a preference. It is applied exactly once. In an
   * experiment with labels, send what a judge said as `judged`, and the label with it or later.
   * With an outbox, feedback that cannot be delivered now is kept there, and null is returned.
   */
  async feedback(decision: string | Decision, given: FeedbackIn = {}): Promise<Decision | null> {
    const { decision: id, ...body } = checkedItem(decision, given);
    const sent = prepared("PUT /v1/decisions/{id}/feedback", { path: { id }, body });
    try {
      return (await sendForJson(sent, this.outbox ? this.#impatient : this.#endpoint)).content;
    } catch (error) {
      if (!isNotDelivered(error)) throw error;
      const item = { decision: id, ...body };
      if (!this.outbox) {
        const rule = `decision '${id}': its feedback was not delivered: ${error.message}`;
        throw new UndeliveredFeedback(`${rule}; send it again, or pass { outbox } to the client to keep it`, [item]);
      }
      this.outbox.add(item);
      return null;
    }
  }

  /** Send the losses of the explored arms of many decisions; returns a decision or an error for each. */
  async feedbackMany(items: FeedbackItem[]): Promise<(Decision | ServiceError)[]> {
    return deliver(items.map((each) => checkedItem(each.decision, each)), this.#endpoint);
  }

  /** Send the label of a decision that was judged and wants one: the true loss of the arm that it *explored*. */
  async label(decision: string | Decision, given: LabelIn = {}): Promise<Decision> {
    const { decision: id, ...body } = checkedItem(decision, given);
    return this.call("PUT /v1/decisions/{id}/label", { path: { id }, body });
  }

  /** The decisions that were judged and await a label, oldest first, and the labels so far. */
  awaitingLabels(name: string, limit = 100): Promise<LabelQueueOut> {
    return this.call("GET /v1/experiments/{name}/labels", { path: { name }, query: { limit } });
  }

  /** Send everything in the outbox. */
  async flush(): Promise<Flushed> {
    if (!this.outbox) throw new ParameterError("outbox: this client has none; pass { outbox: new Outbox() } to it");
    const items = this.outbox.items();
    const results = await deliver(items, this.#impatient);
    const flushed: Flushed = { delivered: [], refused: [], left: 0 };
    results.forEach((result, i) => {
      if (!(result instanceof ServiceError)) flushed.delivered.push(result);
      else if (!TEMPORARY.includes(result.status)) flushed.refused.push({ item: items[i]!, error: result });
    });
    this.outbox.remove([...flushed.delivered.map((each) => each.id), ...flushed.refused.map((each) => each.item.decision)]);
    return { ...flushed, left: this.outbox.size };
  }

  /** Send everything in the outbox once more. Throws what could not be delivered, unless a folder keeps it. */
  async close(): Promise<void> {
    if (!this.outbox || this.outbox.size === 0) return;
    await this.flush();
    const items = this.outbox.items();
    if (items.length && !this.outbox.survives) {
      const rule = `outbox: ${items.length} losses were not delivered, and no folder keeps them`;
      throw new UndeliveredFeedback(`${rule}; they are in \`items\` of this error`, items);
    }
  }

  // Looking

  /** What an experiment has learned: probabilities (of a decision in a context), estimates, counts and the regret. */
  state(name: string, options: { context?: DecideIn["context"] } = {}): Promise<StateOut> {
    const query = options.context ? { context: JSON.stringify(options.context) } : {};
    return this.call("GET /v1/experiments/{name}/state", { path: { name }, query });
  }

  /** Which arm is best, as far as that is decided. It holds at every moment: look as often as you like. */
  verdict(name: string): Promise<VerdictOut> {
    return this.call("GET /v1/experiments/{name}/verdict", { path: { name } });
  }

  /** A verdict for each segment: for which requests which arm is best. They hold all together. */
  segments(name: string, query: Operations["GET /v1/experiments/{name}/segments"]["query"] = {}): Promise<SegmentsOut> {
    return this.call("GET /v1/experiments/{name}/segments", { path: { name }, query });
  }

  /**
   * Whether an arm is shown to be no worse than others by more than a margin. A gate that is not open is an answer, and no
   * error.
   */
  gate(name: string, arm: Arm, options: GateOptions = {}): Promise<GateOut> {
    const query = { ...options, arm: String(arm), closed: "200" as const };
    return this.call("GET /v1/experiments/{name}/gate", { path: { name }, query });
  }

  /** Counts and mean losses, with their intervals, at up to `points` points of the log. */
  history(name: string, points = 200): Promise<HistoryOut> {
    return this.call("GET /v1/experiments/{name}/history", { path: { name }, query: { points } });
  }

  /** The off-policy value of every arm and of what was exploited, each with its interval. */
  evaluation(name: string): Promise<EvaluationOut> {
    return this.call("GET /v1/experiments/{name}/evaluation", { path: { name } });
  }

  /** The log of an experiment, one row for each decision. */
  async log(name: string, format: "csv" | "parquet" = "csv"): Promise<Blob> {
    const sent = prepared("GET /v1/experiments/{name}/log", { path: { name }, query: { format } });
    return (await send(sent, this.#endpoint)).blob;
  }

  /** With an outbox there is no need to wait until a policy is compiled. */
  get #impatient(): Endpoint {
    return { ...this.#endpoint, retries: { ...this.#endpoint.retries, compilingSeconds: 0 } };
  }
}

function checkedUrl(url: string): string {
  let address: URL | undefined;
  try {
    address = new URL(url);
  } catch {
    // refused below
  }
  if (!address || !["http:", "https:"].includes(address.protocol) || !address.hostname) {
    throw new ParameterError(`url = '${url}': must be an address that begins with http:// or https://; for example http://127.0.0.1:8000`);
  }
  address.username = address.password = "";
  return address.href.replace(/\/+$/, "");
}

function prepared<K extends keyof Operations>(operation: K, request: Request<K>): Sent {
  const [method, template] = (operation as string).split(" ") as [string, string];
  const names = (request.path ?? {}) as Record<string, string>;
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => segment(name === "id" ? "decision" : name, names[name]!));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  return {
    method,
    path: query.size ? `${path}?${query}` : path,
    ...(request.body === undefined ? {} : { body: request.body }),
    ...(request.headers === undefined ? {} : { headers: request.headers }),
  };
}

/** A name as one segment of a path; with a slash in it, the path would lead somewhere else. */
function segment(argument: string, name: string): string {
  if (!name || name.includes("/") || /^\.+$/.test(name)) {
    throw new ParameterError(`${argument} = '${name}': must be one segment of a path, without '/'; check it`);
  }
  return encodeURIComponent(name);
}
