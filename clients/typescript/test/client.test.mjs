// What only this client has. The tests that all clients share are in tests/service/client/test_client_contract.py.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, NotFound, ServiceError, TooMany } from "../dist/index.js";
import { pause } from "../dist/exchange.js";

const RETRIES = { attempts: 9, firstSeconds: 0.1, mostSeconds: 1, compilingSeconds: 600 };

test("waits double with jitter, and heed Retry-After", () => {
  for (const [attempt, most] of [[1, 0.1], [2, 0.2], [4, 0.8], [8, 1]]) {
    const pauses = Array.from({ length: 200 }, () => pause(RETRIES, attempt, 0));
    assert.ok(Math.max(...pauses) <= most);
    assert.ok(Math.max(...pauses) - Math.min(...pauses) > 0.5 * most); // a false alarm once in 2**190 runs
  }
  assert.ok(pause(RETRIES, 1, 7) >= 7);
});

test("any operation of the document can be called, with its path escaped and its query", async () => {
  const seen = [];
  const answer = (url, options) => {
    seen.push([options.method, url, options.headers.Authorization]);
    return Promise.resolve(new Response("{}"));
  };
  const client = new Client("https://me:secret@service.example/base/", { key: "dk_x", fetch: answer });
  await client.call("GET /v1/experiments/{name}/history", { path: { name: "a b" }, query: { points: 5 } });
  assert.deepEqual(seen, [["GET", "https://service.example/base/v1/experiments/a%20b/history?points=5", "Bearer dk_x"]]);
});

test("calls run at the same time, and errors can be told apart", async () => {
  let open = 0, most = 0;
  const answer = async () => {
    most = Math.max(most, ++open);
    await new Promise(setImmediate);
    open--;
    return new Response(JSON.stringify({ title: "Not found", detail: "no; look again" }), { status: 404 });
  };
  const client = new Client("http://service.example", { fetch: answer });
  const results = await Promise.allSettled(Array.from({ length: 10 }, () => client.state("x")));
  assert.equal(most, 10);
  for (const { reason } of results) {
    assert.ok(reason instanceof NotFound && reason instanceof ServiceError && !(reason instanceof TooMany));
    assert.equal(reason.status, 404);
    assert.equal(String(reason), "NotFound: no; look again");
  }
});
