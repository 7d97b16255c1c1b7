// Runs calls that arrive as lines of JSON, for the tests that all clients of this repository share.
//
// {"id": 1, "method": "new", "args": [url, options]} makes a client and returns its number; any other method is called on
// the client of that number: {"id": 2, "client": 0, "method": "decide", "args": ["checkout"]}.

import { createInterface } from "node:readline";

import { Client, Outbox } from "../dist/index.js";
import { FolderOutbox } from "../dist/node.js";

const clients = [];

function outboxOf(wanted) {
  if (wanted === undefined) return undefined;
  return wanted === "memory" ? new Outbox() : new FolderOutbox(wanted);
}

function made(url, { outbox, ...options } = {}) {
  const told = [];
  const client = new Client(url, { ...options, outbox: outboxOf(outbox), notify: (message) => told.push(message) });
  client.told = () => told;
  return clients.push(client) - 1;
}

const shown = (error) => ({ error: { name: error.name, message: error.message, items: error.items } });

// A Blob and an error are not JSON.
async function plain(value) {
  if (value instanceof Blob) return await value.text();
  if (Array.isArray(value)) return Promise.all(value.map(plain));
  if (value instanceof Error) return shown(value);
  if (value?.refused) return { ...value, refused: value.refused.map(({ item, error }) => ({ item, ...shown(error) })) };
  return value ?? null;
}

async function answer({ id, client, method, args }) {
  try {
    const called = method === "new" ? made(...args) : clients[client][method](...args);
    return { id, result: await plain(await called) };
  } catch (error) {
    return { id, ...shown(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  answer(JSON.parse(line)).then((found) => process.stdout.write(`${JSON.stringify(found)}\n`));
}
