export type * from "./api.js";
export * from "./client.js";
export * from "./errors.js";
export type { Retries } from "./exchange.js";
export { Outbox } from "./feedback.js";
