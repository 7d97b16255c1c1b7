// Feedback: checked before it is sent, kept while it cannot be delivered, and sent in batches.

import type { DecisionOut, FeedbackIn, FeedbackItem } from "./api.js";
import { Compiling, ParameterError, ServiceError, errorFrom, isNotDelivered } from "./errors.js";
import { CompileWait, sendForJson, type Endpoint } from "./exchange.js";

const BATCH = 500; // the most items in one request

/** Feedback that waits to be sent, oldest first, in memory. `FolderOutbox` of decoupled-client/node survives the program. */
export class Outbox {
  private waiting = new Map<string, FeedbackItem>();
  /** Whether what waits is kept when the program ends. */
  readonly survives: boolean = false;

  get size(): number {
    return this.waiting.size;
  }

  /** All items, oldest first. */
  items(): FeedbackItem[] {
    return [...this.waiting.values()];
  }

  /** Keep an item. Two different losses for one decision cannot both be right: the second throws. */
  add(item: FeedbackItem): void {
    const before = this.waiting.get(item.decision);
    if (before && JSON.stringify(before) !== JSON.stringify(item)) throw anotherLoss(item);
    this.waiting.set(item.decision, item);
  }

  /** Remove the items of these decisions. */
  remove(decisions: string[]): void {
    for (const decision of decisions) this.waiting.delete(decision);
  }
}

/** The error for a second loss of a decision. */
export const anotherLoss = ({ decision }: FeedbackItem): ParameterError =>
  new ParameterError(`decision '${decision}': the outbox has another loss for its explored arm; send only one`);

/** Feedback for a decision, with exactly one of loss, reward and preference, or what a judge said and at most one. */
export function checkedItem(decision: string | { id: string }, given: FeedbackIn): FeedbackItem {
  const one = (["loss", "reward", "preference"] as const).filter((name) => given[name] !== undefined && given[name] !== null);
  if (one.length === 0 && given.judged == null) {
    throw new ParameterError("feedback: neither loss nor reward is given; give the loss of the explored arm, or its reward");
  }
  if (one.length > 1) {
    throw new ParameterError(`feedback: ${one[0]} and ${one[1]} are both given; give the loss of the explored arm or its reward, not both`);
  }
  const item: FeedbackItem = { decision: typeof decision === "string" ? decision : decision.id };
  for (const name of ["loss", "reward"] as const) {
    if (one[0] === name) item[name] = checkedNumber(name, given[name]);
  }
  if (given.preference != null) item.preference = given.preference;
  if (given.arm != null) item.arm = given.arm;
  if (given.judged != null) item.judged = typeof given.judged === "string" ? given.judged : checkedNumber("judged", given.judged);
  if (given.position != null) item.position = checkedNumber("position", given.position);
  return item;
}

function checkedNumber(name: string, value: unknown): number {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "number" && Number.isFinite(value)) return value;
  const rule = typeof value === "number" ? "must be a finite number" : `must be a number, true or false, not ${typeof value}`;
  throw new ParameterError(`${name} = ${typeof value === "string" ? `'${value}'` : value}: ${rule}; give the ${name} of the explored arm`);
}

/** Send feedback in batches, and send again what has to wait until a policy is compiled. */
export async function deliver(items: FeedbackItem[], endpoint: Endpoint): Promise<(DecisionOut | ServiceError)[]> {
  const results = await sendBatches(items, endpoint);
  const compileWait = new CompileWait(endpoint);
  for (;;) {
    const places = results.flatMap((each, place) => (each instanceof Compiling ? [place] : []));
    if (places.length === 0 || compileWait.over) return results;
    await compileWait.pause(1, (results[places[0]!] as Compiling).message);
    const again = await sendBatches(places.map((place) => items[place]!), endpoint);
    places.forEach((place, i) => (results[place] = again[i]!));
  }
}

async function sendBatches(items: FeedbackItem[], endpoint: Endpoint): Promise<(DecisionOut | ServiceError)[]> {
  const results: (DecisionOut | ServiceError)[] = [];
  for (let start = 0; start < items.length; start += BATCH) {
    const body = { items: items.slice(start, start + BATCH) };
    try {
      const { content } = await sendForJson({ method: "POST", path: "/v1/feedback", body }, endpoint);
      for (const each of content.results) {
        results.push(each.status === 200 ? each.decision : errorFrom(each.status, each.problem));
      }
    } catch (error) {
      if (!isNotDelivered(error)) throw error;
      return [...results, ...items.slice(start).map(() => error)];
    }
  }
  return results;
}
