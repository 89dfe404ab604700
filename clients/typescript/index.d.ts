// The types of index.js. What the service takes and answers is in api.d.ts, which scripts/typescript_api.py writes.

import type * as api from "./api.js";

export type * from "./api.js";

export interface Settings {
  /** The API key; by default PAMO_KEY of the environment. null: none. Never ship one that may do more than a visitor may. */
  key?: string | null;
  /** Milliseconds that an attempt may take, its answer included; 10,000 by default. */
  timeout?: number;
  /** Attempts after the first; 4 by default. */
  retries?: number;
  /** Milliseconds before the second attempt, twice as many before each next one; 100 by default. */
  backoff?: number;
  /** Milliseconds that no pause exceeds; a service that asks for more is not waited for. 30,000 by default. */
  longestPause?: number;
  /** Sends the requests in place of the global one. */
  fetch?: typeof fetch;
  /** Spends a pause of so many milliseconds, and draws from 0 to 1: for tests. */
  sleep?: (milliseconds: number) => Promise<void>;
  random?: () => number;
}

/** What `decide` takes beside the user. key: makes the call repeatable, also after a new start of your program. */
export type Offer = Omit<api.BatchDecision, "user">;

/** What became of one feedback of many. error: what `feedback` would have thrown, null if it counts. */
export type FeedbackResult = api.FeedbackResult & { error: PamoError | null };

/** The root of every error of this client. */
export class PamoError extends Error {
  constructor(message: string, more?: { code?: string; field?: string | null; cause?: unknown });
  /** What went wrong, in one word that stays the same while sentences improve. */
  readonly code: string;
  /** Where the value was given that it is about, such as "rewards.price". */
  readonly field: string | null | undefined;
}
/** A value is not one that pamo can work with; `field` says where. */
export class InputError extends PamoError {}
/** There is no decision of that id, or none any more. */
export class UnknownDecisionError extends PamoError {}
/** The feedback came too late for its decision, and was not counted. */
export class ExpiredDecisionError extends PamoError {}
/** Something else was recorded before, as the feedback to the same decision or under the same key. */
export class ConflictError extends PamoError {}
/** The key was refused: none was given, it is not known, or its role may not do that. */
export class RefusedError extends PamoError {}
/** The service did not answer, or not with anything that one can go on with. */
export class ServiceError extends PamoError {}

/**
 * Asks pamo's service. A call that is not answered, or answered 429, 502, 503 or 504, is tried again as it was, so that
 * nothing is decided or counted twice.
 */
export class Client {
  /**
   * url: where the service is; by default PAMO_URL of the environment, on a page the server that it came from, or this
   * machine's port 8000.
   */
  constructor(url?: string | null, settings?: Settings);
  readonly url: string;

  /** Choose an arm for a user, or rank the best k. */
  decide(user: string, offer?: Offer): Promise<api.Decision>;
  /** Choose for many users at once; nothing is recorded if one of the requests is wrong. */
  decideMany(requests: Iterable<string | api.BatchDecision>): Promise<api.Decision[]>;
  /** Give what came of a decision, at once or in parts; the same again changes nothing. */
  feedback(decision: string | { id: string }, came: api.FeedbackBody): Promise<api.Feedback>;
  /** Give many feedbacks at once; one that is refused for what was recorded before stops no other. */
  feedbackMany(items: Iterable<api.BatchFeedback>): Promise<FeedbackResult[]>;
  /** Return a decision that was made, why, and its feedback. */
  decision(id: string): Promise<api.ExplainedDecision>;
  /** Say why an arm was chosen, and which would have been without exploration. */
  explain(decision: string | { id: string }): Promise<api.Explanation>;

  /** Return what a user cares about, with intervals; for a new user, what users have in common. */
  preference(user: string): Promise<api.Preference>;
  /** Return everything that is kept of a user. Needs the role admin. */
  exportUser(user: string): Promise<api.UserExport>;
  /** Forget a user; the arms keep what they learned. Needs the role admin. */
  eraseUser(user: string): Promise<void>;

  /** Offer an arm from now on; again: revive it; with another name: rename it. Needs the role admin. */
  addArm(arm: string, known?: api.ArmBody): Promise<api.Arm>;
  /** Offer many arms from now on; nothing is recorded if one of them is wrong. Needs the role admin. */
  addArms(arms: Iterable<string | api.BatchArm>): Promise<api.Arm[]>;
  /** Offer an arm no longer; late feedback still counts. Needs the role admin. */
  retireArm(arm: string): Promise<api.Arm>;
  /** Return an arm. */
  arm(id: string): Promise<api.Arm>;
  /** Return all arms, the retired ones among them. */
  arms(): Promise<api.Arm[]>;
  /** Return the active arms, those on the Pareto front first, with how sure it is that they are on it. */
  front(query?: NonNullable<api.Operations["getFront"]["given"]["query"]>): Promise<api.FrontArm[]>;
  /** Let arms, or users, have these features from now on; return all that those have. Needs the role admin. */
  declareFeatures(
    features: Iterable<string | api.DeclaredFeature>,
    whose?: { of?: "arms" | "users" },
  ): Promise<api.Feature[]>;

  /** Serve a share of the users, the control group, otherwise from now on. Needs the role admin. */
  startExperiment(name: string, how?: Omit<api.ExperimentBody, "name">): Promise<api.Experiment>;
  /** Serve everybody alike again; late feedback to the experiment's decisions still counts. Needs the role admin. */
  endExperiment(): Promise<api.Experiment>;
  /** Return how the groups of the newest experiment compare, however often; null where there was none. */
  experiment(): Promise<api.Experiment | null>;

  /** Return what arms are scored on. */
  objectives(): Promise<api.Objective[]>;
  /** Return the scale of the overall score. */
  overall(): Promise<api.Objective>;
  /** Return what may be known of arms, or of users, beforehand. */
  features(whose?: { of?: "arms" | "users" }): Promise<api.Feature[]>;
  /** Count what there is: arms, users who gave feedback, feedbacks, and decisions that wait for one. */
  statistics(): Promise<api.Statistics>;
  /** Tell whether the service is alive; asked once, and never thrown. */
  health(): Promise<boolean>;
  /** Tell whether the service can record anything now; asked once, and never thrown. */
  ready(): Promise<boolean>;

  /** Ask for any operation of the description by its name, such as "getLeaderboard". */
  call<Name extends keyof api.Operations>(
    operation: Name,
    ...given: {} extends api.Operations[Name]["given"]
      ? [given?: api.Operations[Name]["given"]]
      : [given: api.Operations[Name]["given"]]
  ): Promise<api.Operations[Name]["answer"]>;
}
