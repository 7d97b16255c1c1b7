// What needs Node: an outbox in a folder.

import { createHash, randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { basename, join } from "node:path";

import type { FeedbackItem } from "./api.js";
import { ParameterError } from "./errors.js";
import { Outbox, anotherLoss } from "./feedback.js";

const ABANDONED = 600_000; // milliseconds after which an unfinished file is left over from a killed program

/**
 * An outbox that survives the program: a folder with a file for each decision, flushed to disk before `add` returns.
 *
 * Several programs may use one folder, also with the client for Python: each sends what any of them left there.
 */
export class FolderOutbox extends Outbox {
  override readonly survives: boolean = true;

  constructor(readonly path: string) {
    super();
    if (existsSync(path) && !statSync(path).isDirectory()) {
      throw new ParameterError(`outbox '${path}': is a file, and an outbox is a folder; choose another path`);
    }
    for (const name of this.#names(/^\..+\.[0-9a-f]{16}$/)) {
      unlessGone(() => Date.now() - statSync(join(path, name)).mtimeMs > ABANDONED && rmSync(join(path, name)));
    }
    this.items(); // to notice what is damaged
  }

  override get size(): number {
    return this.#names(/\.json$/).length;
  }

  override items(): FeedbackItem[] {
    const found = this.#names(/\.json$/).flatMap((name) => {
      const file = join(this.path, name);
      const item = unlessGone(() => ({ at: statSync(file, { bigint: true }).mtimeNs, item: read(file) }));
      return item ? [item] : [];
    });
    return found.sort((one, two) => (one.at < two.at ? -1 : one.at > two.at ? 1 : 0)).map(({ item }) => item);
  }

  override add(item: FeedbackItem): void {
    mkdirSync(this.path, { recursive: true });
    const file = this.#file(item.decision);
    const made = join(this.path, `.${basename(file)}.${randomBytes(8).toString("hex")}`);
    try {
      flushed(made, "wx", JSON.stringify(item));
      for (;;) {
        try {
          linkSync(made, file); // fails if another program has kept feedback for the same decision
          return flushed(this.path, "r");
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
          const kept = unlessGone(() => read(file));
          if (kept && !same(kept, item)) throw anotherLoss(item);
          if (kept) return;
        }
      }
    } finally {
      rmSync(made, { force: true });
    }
  }

  override remove(decisions: string[]): void {
    for (const decision of decisions) rmSync(this.#file(decision), { force: true });
  }

  /** The id of a decision may be any text, and the name of a file may not. */
  #file(decision: string): string {
    return join(this.path, `${createHash("sha256").update(decision).digest("hex")}.json`);
  }

  #names(shape: RegExp): string[] {
    return (unlessGone(() => readdirSync(this.path)) ?? []).filter((name) => shape.test(name));
  }
}

/** The result, or nothing if another program has removed the file. */
function unlessGone<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Flush a file to disk, or the names in a folder, which Windows cannot open. */
function flushed(path: string, mode: "wx" | "r", text = ""): void {
  if (mode === "r" && process.platform === "win32") return;
  const file = openSync(path, mode);
  try {
    if (text) writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function read(file: string): FeedbackItem {
  const text = readFileSync(file, "utf8");
  try {
    const item = JSON.parse(text);
    if (typeof item?.decision !== "string") throw new Error("it has no decision");
    return item as FeedbackItem;
  } catch (error) {
    throw new ParameterError(`outbox '${file}': is damaged (${(error as Error).message}); fix the file, or move it`);
  }
}

const same = (one: FeedbackItem, two: FeedbackItem): boolean =>
  (["decision", "loss", "reward", "arm", "preference"] as const).every((name) => (one[name] ?? null) === (two[name] ?? null));
