// Asks the TypeScript client what tests/client/typescript.py wants to know: a line of JSON in, a line of JSON out.

import { createInterface } from "node:readline";

const { Client, PamoError } = await import(process.argv[2]);

const METHODS = {
  decide: (client, { user, ...offer }) => client.decide(user, offer),
  decide_many: (client, { requests }) => client.decideMany(requests),
  feedback: (client, { decision_id, ...came }) => client.feedback(decision_id, came),
  feedback_many: (client, { items }) => client.feedbackMany(items),
  decision: (client, { decision_id }) => client.decision(decision_id),
  explain: (client, { decision }) => client.explain(decision),
  preference: (client, { user }) => client.preference(user),
  export_user: (client, { user }) => client.exportUser(user),
  erase_user: (client, { user }) => client.eraseUser(user),
  add_arm: (client, { arm, ...known }) => client.addArm(arm, known),
  add_arms: (client, { arms }) => client.addArms(arms),
  retire_arm: (client, { arm }) => client.retireArm(arm),
  arm: (client, { arm }) => client.arm(arm),
  declare_features: (client, { features, ...whose }) => client.declareFeatures(features, whose),
  start_experiment: (client, { name, ...how }) => client.startExperiment(name, how),
  end_experiment: (client) => client.endExperiment(),
  features: (client, whose) => client.features(whose),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { url, settings, method, given } = JSON.parse(line);
  const pauses = [];
  const sleep = async (milliseconds) => void pauses.push(milliseconds / 1000);
  const reply = { pauses };
  try {
    const client = new Client(url, { ...settings, sleep });
    reply.answer = (await (METHODS[method] ?? ((one) => one[method]()))(client, given)) ?? null;
    if (method === "feedback_many") {
      // The errors are the results' own, made here: they have to be what the reader makes of code and detail.
      reply.answer = reply.answer.map(({ error, ...one }) => {
        if ((error === null) !== ["recorded", "duplicate"].includes(one.status)) throw new Error(`${one.status}: ${error}`);
        if (error !== null && (error.code !== one.code || error.message !== one.detail)) throw error;
        return one;
      });
    }
  } catch (error) {
    if (!(error instanceof PamoError)) throw error;
    reply.error = { name: error.name, message: error.message, field: error.field ?? null, code: error.code };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
