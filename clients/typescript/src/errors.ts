// Errors: those of the service by their status, and those of the client. Their names are the same as in Python.

import type { FeedbackItem, Problem } from "./api.js";

/** An argument that cannot be sent. Nothing was sent. */
export class ParameterError extends Error {
  override name = "ParameterError";
}

/** The base class of the service's errors. What raises one has changed nothing. */
export class ServiceError extends Error {
  override name = "ServiceError";
  constructor(message: string, readonly status: number = 500) {
    super(message);
  }
}

/** Not JSON, or not well-formed HTTP. */
export class BadRequest extends ServiceError { override name = "BadRequest"; }
/** The key is missing, unknown or revoked. */
export class Unauthorized extends ServiceError { override name = "Unauthorized"; }
/** The key's role does not allow the request. */
export class Forbidden extends ServiceError { override name = "Forbidden"; }
/** Nothing with that name or id exists for this tenant. */
export class NotFound extends ServiceError { override name = "NotFound"; }
/** The same name, key or decision was used before with other contents. */
export class Conflict extends ServiceError { override name = "Conflict"; }
/** Feedback came after the decision's deadline. */
export class Gone extends ServiceError { override name = "Gone"; }
/** The body is larger than the limit. */
export class TooLarge extends ServiceError { override name = "TooLarge"; }
/** An argument is outside its domain. */
export class Invalid extends ServiceError { override name = "Invalid"; }
/** More requests than the limit. */
export class TooMany extends ServiceError { override name = "TooMany"; }
/** The store could not write or read. Nothing was acknowledged. */
export class StoreError extends ServiceError { override name = "StoreError"; }
/** The policy of an experiment is being compiled, once on the service's machine. */
export class Compiling extends ServiceError { override name = "Compiling"; }
/** The policy of an experiment does not compile on the service's machine. */
export class NotCompiled extends ServiceError { override name = "NotCompiled"; }
/** The service could not be reached, or did not answer, in any attempt. */
export class Unreachable extends ServiceError { override name = "Unreachable"; }

/** Feedback that did not arrive. It is in `items`, and nowhere else. */
export class UndeliveredFeedback extends ServiceError {
  override name = "UndeliveredFeedback";
  constructor(message: string, readonly items: FeedbackItem[]) {
    super(message, 503);
  }
}

/** The statuses after which the same request may succeed later. */
export const TEMPORARY: readonly number[] = [429, 502, 503, 504];

const BY_STATUS: Record<number, typeof ServiceError> = {
  400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone, 413: TooLarge,
  422: Invalid, 429: TooMany, 502: StoreError, 503: StoreError, 504: StoreError,
};
const BY_TITLE: Record<string, typeof ServiceError> = {
  "503 Compiling": Compiling, "500 Compilation failed": NotCompiled,
};

/** The error that a problem of the service describes. */
export function errorFrom(status: number, problem: Partial<Problem>): ServiceError {
  const kind = BY_TITLE[`${status} ${problem.title}`] ?? BY_STATUS[status] ?? ServiceError;
  return new kind(String(problem.detail), status);
}

/** Whether to send feedback again after this error. */
export const isNotDelivered = (error: unknown): error is ServiceError =>
  [Unreachable, StoreError, Compiling, TooMany].some((kind) => error instanceof kind);
