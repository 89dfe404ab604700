// What has to compile, and what must not: `npm run check`. Not a part of the package.

import { Client, ConflictError, type Decision, type FeedbackResult } from "./index.js";

const client = new Client("http://127.0.0.1:8000", { key: null, retries: 2 });

const decision: Decision = await client.decide("ann", { arms: { A: { price: 95 }, B: null }, k: 2, key: "visit-17" });
const { status } = await client.feedback(decision, { rewards: { taste: 4 }, overall: 0.8 });
const word: "recorded" | "duplicate" = status;
const results: FeedbackResult[] = await client.feedbackMany([{ id: decision.id, overall: 0.5 }]);
if (results[0]?.error instanceof ConflictError) console.log(results[0].error.code, word);
const { total } = await client.call("getLeaderboard", { query: { sort: "pulls", limit: 5 } });
const count: number = total + (await client.call("getStatistics")).users;
await client.addArms(["A", { id: "B", name: "Bristol", features: { stars: 4 } }]);
console.log(count, (await client.preference("ann")).objectives["taste"]?.weight);

// @ts-expect-error: an operation that there is not
await client.call("getWeather");
// @ts-expect-error: a decision needs its user
await client.call("decide", { body: {} });
// @ts-expect-error: scores are numbers
await client.feedback(decision, { rewards: { taste: "good" } });
// @ts-expect-error: an id is needed
await client.call("getArm");
