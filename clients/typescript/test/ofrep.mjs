// OpenFeature's own provider for Node against a service: prints what it resolves, as JSON.
// Usage: node ofrep.mjs URL KEY FLAG ...

import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OpenFeature } from "@openfeature/server-sdk";

const [url, key, ...flags] = process.argv.slice(2);
const headers = key ? [["Authorization", `Bearer ${key}`]] : [];
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: url, headers }));
const client = OpenFeature.getClient();
const context = { targetingKey: "user-1", plan: "free" };
const found = {};
for (const flag of flags) found[flag] = await client.getStringDetails(flag, "fallback", context);
found.number = await client.getNumberDetails("size", 0, context);
console.log(JSON.stringify(found));
