// What needs Node: an outbox in a file.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";

import type { FeedbackItem } from "./api.js";
import { ParameterError } from "./errors.js";
import { Outbox } from "./feedback.js";

const START = '{"decision":"'; // how every line begins

/** An outbox that survives the program: each item is flushed to disk before `add` returns. */
export class FileOutbox extends Outbox {
  override readonly survives: boolean = true;

  constructor(readonly path: string) {
    super();
    if (!existsSync(path)) return;
    for (const item of read(path)) this.waiting.set(item.decision, item);
    this.rewrite();
  }

  protected override write(item: FeedbackItem): void {
    append(this.path, "a", [item]);
  }

  protected override rewrite(): void {
    append(`${this.path}.new`, "w", this.items());
    renameSync(`${this.path}.new`, this.path);
  }
}

function append(path: string, mode: "a" | "w", items: FeedbackItem[]): void {
  const file = openSync(path, mode);
  try {
    writeSync(file, items.map((item) => `${line(item)}\n`).join(""));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

const line = ({ decision, ...rest }: FeedbackItem): string => JSON.stringify({ decision, ...rest });

function read(path: string): FeedbackItem[] {
  const lines = readFileSync(path, "utf8").split("\n");
  const last = lines.pop() ?? "";
  // An incomplete last line was being written when the program ended, before `add` returned.
  if (!last.startsWith(START.slice(0, last.length))) {
    throw new ParameterError(`outbox '${path}': is another kind of file; choose another path`);
  }
  try {
    return lines.map((text) => {
      const item = JSON.parse(text);
      if (typeof item?.decision !== "string") throw new Error("a line has no decision");
      return item as FeedbackItem;
    });
  } catch (error) {
    throw new ParameterError(`outbox '${path}': is damaged (${(error as Error).message}); fix the line, or move the file`);
  }
}
