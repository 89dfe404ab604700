// Written by scripts/typescript_api.py from the service's own description: change that, not this.

/** What came of a decision: any of rewards by objective, the overall score, and the preference the user stated. */
export interface FeedbackBody {
  /** Scores by objective, on their own scales. */
  rewards?: Record<string, number> | null | undefined;
  /** The user's one overall score. */
  overall?: number | null | undefined;
  /** The weights that the user stated. */
  preference?: Record<string, number> | null | undefined;
  /** Which of the ranked arms it is for; the first by default. */
  arm?: string | null | undefined;
}

/**
 * What became of a feedback: "recorded", or "duplicate" if the same was recorded before.
 *
 * id: the decision's. learned: what it taught, such as "arm: price" or "preference"; not_learned: what it would have
 * taught had it been complete.
 */
export interface Feedback {
  id: string;
  status: "duplicate" | "recorded";
  learned: string[];
  not_learned: string[];
}

/** Ask for an arm for a user. Only `user` is required; without `arms` all active ones are on offer. */
export interface DecisionBody {
  /** Whom to choose for; new users need no registration. */
  user: string;
  /** The offer: ids of active arms, each once; or by id the scores by objective that are known beforehand, such as tonight's price. */
  arms?: string[] | Record<string, Record<string, number> | null> | null | undefined;
  /** How many arms to rank. */
  k?: number | undefined;
  /** The user's weights, where they are known. */
  preference?: Record<string, number> | null | undefined;
  /** What is known of the user: numbers, yes or no, words, of the features that are declared for users. It is kept until it changes; null is one that is not known any more. */
  features?: Record<string, number | boolean | string | null> | null | undefined;
  /** The arm that you would give yourself, for an experiment whose control group gets that. */
  choice?: string | null | undefined;
}

/**
 * A decision: the arm to give, the ranked arms, and the chance with which the first came first.
 *
 * arm: the one to give; arms: it and the next best, as many as were asked for. propensity: the chance with which the
 * first arm came first; below 1 only where there was a tie or the policy draws. policy: its label and pamo's version.
 *
 * In process it has more: details, the numbers behind it, which `Engine.explain` puts into words; and repeated,
 * whether it had been made before, for the same key.
 */
export interface Decision {
  id: string;
  user: string | null;
  arm: string;
  arms: string[];
  propensity: number;
  policy: string;
}

/** Ask for arms for many users at once; nothing is recorded if one of the requests is wrong. */
export interface DecisionBatch {
  requests: BatchDecision[];
}

/** Ask for an arm for a user, among many. `key` makes the request repeatable. */
export interface BatchDecision {
  /** Whom to choose for; new users need no registration. */
  user: string;
  /** The offer: ids of active arms, each once; or by id the scores by objective that are known beforehand, such as tonight's price. */
  arms?: string[] | Record<string, Record<string, number> | null> | null | undefined;
  /** How many arms to rank. */
  k?: number | undefined;
  /** The user's weights, where they are known. */
  preference?: Record<string, number> | null | undefined;
  /** What is known of the user: numbers, yes or no, words, of the features that are declared for users. It is kept until it changes; null is one that is not known any more. */
  features?: Record<string, number | boolean | string | null> | null | undefined;
  /** The arm that you would give yourself, for an experiment whose control group gets that. */
  choice?: string | null | undefined;
  key?: string | null | undefined;
}

/** Decisions, in the order in which they were asked for. */
export interface Decisions {
  decisions: Decision[];
}

/** Give feedback to many decisions at once; nothing is recorded if one of them is wrong in itself. */
export interface FeedbackBatch {
  feedback: BatchFeedback[];
}

/** What came of a decision, among many. id: the decision's. */
export interface BatchFeedback {
  /** Scores by objective, on their own scales. */
  rewards?: Record<string, number> | null | undefined;
  /** The user's one overall score. */
  overall?: number | null | undefined;
  /** The weights that the user stated. */
  preference?: Record<string, number> | null | undefined;
  /** Which of the ranked arms it is for; the first by default. */
  arm?: string | null | undefined;
  id: string;
}

/** What became of feedbacks, in the order in which they came. */
export interface FeedbackResults {
  results: FeedbackResult[];
}

/**
 * What became of one feedback of many.
 *
 * status: "recorded", "duplicate" (the same was recorded before, which is as good), "conflict" (another one was),
 * "unknown" (there is no such decision, or it did not choose that arm) or "expired" (it came too late). id: the
 * decision's. learned and not_learned: as in `Feedback`. detail: why it was refused, None if it was not. code: what
 * happened, in one word for programs.
 */
export interface FeedbackResult {
  id: string;
  status: "recorded" | "duplicate" | "conflict" | "unknown" | "expired";
  learned: string[];
  not_learned: string[];
  detail: string | null;
  code: "recorded" | "duplicate" | "unknown_decision" | "unknown_arm" | "unknown_experiment" | "arm_not_chosen" | "feedback_conflict" | "decision_conflict" | "experiment_conflict" | "key_conflict" | "expired_decision" | "invalid" | "malformed" | "unauthorized" | "forbidden" | "not_found" | "method_not_allowed" | "body_timeout" | "too_large" | "not_json" | "rate_limited" | "failed" | "unavailable";
}

/**
 * A decision with its explanation, its time in seconds since 1970, and its feedback, null while it is awaited.
 *
 * feedback: what was given so far of the arm to give, or, where that was not rated, of the first that was. others: of
 * other arms of the ranking. awaited: what has not been given of the arm to give, and can still be: objectives and
 * "overall".
 */
export interface ExplainedDecision {
  id: string;
  user: string | null;
  arm: string;
  arms: string[];
  propensity: number;
  policy: string;
  at: number;
  explanation: Explanation;
  feedback: Given | null;
  others: Given[];
  awaited: string[];
}

/**
 * Why an arm was chosen, and which would have been without exploration.
 *
 * preference: the weights used. chosen: what its score is made of, None for a policy that forms no preference.
 * without_exploration: the same for the arm of the highest value, which may be the same arm; None before any was
 * tried. sentence: all this in words. scores: by objective where the chosen arm's score was from: "given" beforehand,
 * "seen" in feedback to it, or "foretold" from other arms'. explored: whether another had been chosen otherwise.
 */
export interface Explanation {
  decision: string;
  policy: string;
  preference: Record<string, number>;
  chosen: ArmScore | null;
  without_exploration: ArmScore | null;
  sentence: string;
  explored: boolean;
  scores: Record<string, string>;
}

/**
 * What an arm's score is made of: its value by objective (weight times mean), and the two bonuses.
 *
 * value: what the user is expected to think of the arm, the sum of its values. score: value and bonuses together. An
 * arm without complete feedback may have an infinite reward bonus (null in JSON, like its score): it comes first.
 */
export interface ArmScore {
  arm: string;
  values: Record<string, number>;
  reward_bonus: number | null;
  preference_bonus: number;
  value: number;
  score: number | null;
}

/** The feedback that a decision got. */
export interface Given {
  at: number;
  arm: string | null;
  rewards: Record<string, number>;
  overall: number | null;
  preference: Record<string, number> | null;
}

/**
 * What a user cares about.
 *
 * source: "stated" (the mean of what the user stated), "overall" (learned from overall scores), "others" (a new user:
 * what users have in common) or "nothing" (nobody has given an overall score yet). level: the chance with which an
 * interval holds its weight, as far as the model is right. changed: when the user was last found to care about other
 * things than before, in seconds since 1970; what was learned until then counts no more.
 */
export interface Preference {
  user: string;
  rounds: number;
  source: string;
  level: number;
  objectives: Record<string, Weight>;
  changed: number | null;
}

/** How much an objective counts for a user, and between which weights that probably lies. */
export interface Weight {
  weight: number;
  low: number;
  high: number;
}

/** How what is known of a user's preference moved, the oldest first. */
export interface PreferenceHistory {
  user: string;
  points: PreferencePoint[];
}

/** What was known of a user's preference at a time, in seconds since 1970. */
export interface PreferencePoint {
  at: number;
  rounds: number;
  source: string;
  objectives: Record<string, Weight>;
}

/**
 * A user's decisions, the newest first. next: what to send as `before` for those before them, null at the end.
 *
 * names: of the arms that were given, or would have been without exploration.
 */
export interface UserDecisions {
  decisions: ExplainedDecision[];
  names: Record<string, string>;
  next: number | null;
}

/** Users who gave feedback, those with the most first. more: whether there are more of them. */
export interface UsersFound {
  users: UserFound[];
  more: boolean;
}

/** A user, how many feedbacks they have given, and what their overall scores tell of what they care about. */
export interface UserFound {
  user: string;
  rounds: number;
  weights: Record<string, number> | null;
}

/** Everything that is kept of a user: what was learned, decisions and feedback, and what is known beforehand. */
export interface UserExport {
  user: string;
  preference: Preference;
  history: Record<string, unknown>[];
  features: Record<string, boolean | number | string>;
}

/** Arms, the retired ones among them. */
export interface ArmList {
  arms: Arm[];
}

/**
 * An arm: its id, its name for display, whether it is offered, and its features.
 *
 * pulls: how many feedbacks it has, the incomplete ones too; where it was found to have changed, as many as told of
 * the objective that most is known of.
 */
export interface Arm {
  id: string;
  name: string;
  active: boolean;
  pulls: number;
  features: Record<string, boolean | number | string>;
}

/** Arms to offer; nothing is recorded if one of them is wrong. */
export interface ArmBatch {
  arms: BatchArm[];
}

/** An arm to offer, among many. */
export interface BatchArm {
  name?: string | null | undefined;
  /** What is known of it: numbers, yes or no, words, of the features that are declared. */
  features?: Record<string, number | boolean | string | null> | null | undefined;
  id: string;
}

/** Features that arms, or users, may have from now on. */
export interface FeaturesBody {
  features: DeclaredFeature[];
  of?: "arms" | "users" | undefined;
}

/** What may be known of an arm, or of a user, beforehand. */
export interface DeclaredFeature {
  name: string;
  kind?: "number" | "word" | "yes or no" | undefined;
}

/** The features that arms, or users, may have. */
export interface Features {
  features: Feature[];
}

/** What is known of arms, or of users, beforehand: a name, and whether it is a number, a yes or no, or a word. */
export interface Feature {
  name: string;
  kind: string;
}

/** An arm to offer. name: for display; the id, or the name it had, if it is left out. features: new or changed. */
export interface ArmBody {
  name?: string | null | undefined;
  /** What is known of it: numbers, yes or no, words, of the features that are declared. */
  features?: Record<string, number | boolean | string | null> | null | undefined;
}

/** The active arms, those on the Pareto front first. */
export interface Front {
  arms: FrontArm[];
}

/**
 * An arm and the Pareto front.
 *
 * on_front: whether no other arm's means are higher in every objective. confidence: the chance that this is so of the
 * true means (that the arm is on the front), None for an arm without complete feedback.
 */
export interface FrontArm {
  arm: string;
  name: string;
  pulls: number;
  on_front: boolean;
  confidence: number | null;
  objectives: Record<string, Estimate>;
}

/** A mean of an arm's objective, from 0 (worst) to 1 (best), and between which numbers it probably lies. */
export interface Estimate {
  mean: number;
  low: number;
  high: number;
}

/** A page of the active arms, and how many there are that the search finds. */
export interface Leaderboard {
  total: number;
  arms: Standing[];
}

/**
 * An arm in a leaderboard: what is known of it, by objective, where anything is.
 *
 * overall: of the overall score, of those who were given it. typical: what somebody with everybody's weights would say
 * of it, which can be compared between arms whoever was given them; from 0 to 1 as well, None where that is not known.
 */
export interface Standing {
  arm: string;
  name: string;
  active: boolean;
  pulls: number;
  objectives: Record<string, Estimate>;
  overall: Estimate | null;
  typical: Estimate | null;
}

/** Weights for every objective, of which only the proportions matter. */
export interface RankingBody {
  /** The weights to try. */
  preference: Record<string, number>;
}

/** The arms that are worth most by the given weights. untried: how many arms nothing is known of. */
export interface Ranking {
  arms: Ranked[];
  untried: number;
}

/** An arm in a ranking by weights that add up to 1: its value with an interval, and what each objective adds. */
export interface Ranked {
  arm: string;
  name: string;
  pulls: number;
  value: Estimate;
  values: Record<string, number>;
}

/** The newest experiment, null where there was none. */
export interface ExperimentFound {
  experiment: Experiment | null;
}

/**
 * An experiment and what came of it so far.
 *
 * started, ended: when, in seconds since 1970; ended is null while it runs. control: the share of users in the control
 * group, policy how they are served, and control_users those who gave feedback. smallest: the smallest difference
 * worth finding, in standard deviations. variants: what control is compared with; "treated" are all others. sentence:
 * what it says, in words. warning: what speaks against believing it, "" where nothing does.
 */
export interface Experiment {
  name: string;
  started: number;
  ended: number | null;
  control: number;
  policy: string;
  smallest: number;
  control_users: number;
  variants: ComparedVariant[];
  sentence: string;
  warning: string;
}

/**
 * A variant and how it compares with control, overall and by objective.
 *
 * share: of the users. policy, preference: how they are served. users: those who gave feedback. sentence: what it
 * says, in words.
 */
export interface ComparedVariant {
  name: string;
  share: number;
  policy: string;
  preference: Record<string, number> | null;
  users: number;
  overall: Compared;
  objectives: Record<string, Compared>;
  sentence: string;
}

/**
 * A score in a variant and in control, on its own scale: the mean over users of each user's mean.
 *
 * treated, control: the means; difference: how much more those of the variant have, from low to high: in 95 % of
 * experiments no variant's interval is ever wrong, however often one looks; null while there are fewer than 20 users
 * in a group. better: whether the variant is better off, null while that is open. treated_users, control_users: those
 * who gave the score. still_needed: how many more such users there have to be, of all groups together, until the
 * smallest difference worth finding would show.
 */
export interface Compared {
  treated: number | null;
  control: number | null;
  difference: number | null;
  low: number | null;
  high: number | null;
  better: boolean | null;
  treated_users: number;
  control_users: number;
  still_needed: number;
}

/** An experiment to start. One runs at a time, and a name is used once. */
export interface ExperimentBody {
  /** What it is called; who is in control hangs on it. */
  name: string;
  /** The group's share of the users. */
  control?: number | undefined;
  /** How the group is served: live (as everybody is), random, caller (the choice that comes with each decision), arm:ID, or the name of a policy with any hyperparameters, such as prucb-hp-v:reward_scale=0.5. */
  policy?: string | undefined;
  /** The smallest difference worth finding, in standard deviations. */
  smallest?: number | undefined;
  /** More groups, each of which is compared with control. */
  variants?: VariantBody[] | undefined;
}

/** A group beside control. */
export interface VariantBody {
  /** What it is called; neither control nor treated. */
  name: string;
  /** The group's share of the users. */
  share: number;
  /** How the group is served: live (as everybody is), random, caller (the choice that comes with each decision), arm:ID, or the name of a policy with any hyperparameters, such as prucb-hp-v:reward_scale=0.5. */
  policy?: string | undefined;
  /** Weights by which all of the group are served, in place of their own. */
  preference?: Record<string, number> | null | undefined;
}

/** The objectives, the scale of the overall score, and the features that arms and users may have. */
export interface Objectives {
  objectives: Objective[];
  overall: Objective;
  features: Feature[];
  user_features: Feature[];
}

/** What an arm is scored on: its scale as people give it, and whether less of it is better. */
export interface Objective {
  name: string;
  low: number;
  high: number;
  lower_is_better: boolean;
}

/** How much of everything there is: arms, users who gave feedback, feedbacks, and decisions that wait for one. */
export interface Statistics {
  arms: number;
  retired_arms: number;
  users: number;
  pending_decisions: number;
  complete_feedbacks: number;
  overall_scores: number;
  rewards: number;
}

/**
 * What went on: buckets of so many seconds, the empty ones left out.
 *
 * By the second and the minute that is what this worker has done since it started. By the quarter of an hour, the hour
 * and the day it is counted from the journal, over restarts and all workers, some seconds behind. since: when what
 * there is begins.
 */
export interface ActivityReport {
  since: number;
  now: number;
  seconds: number;
  decisions_per_second: number;
  feedbacks_per_second: number;
  buckets: Bucket[];
}

/**
 * What happened in some seconds from `at` on.
 *
 * explored: decisions that greed would have made otherwise. scored: feedbacks that could be compared; got, greedy and
 * random: on average over these, what came back, what the arm that looked best was expected to get, and what the arms
 * on offer get on average, each from 0 (worst) to 1 (best); null where there are none.
 */
export interface Bucket {
  at: number;
  decisions: number;
  explored: number;
  feedbacks: number;
  scored: number;
  got: number | null;
  greedy: number | null;
  random: number | null;
}

/** What there is to know, the worst first; none where all is as it should be. */
export interface Alerts {
  alerts: Alert[];
}

/**
 * Something that whoever looks after the service should know.
 *
 * code: one stable word for it. level: "act" where nothing can be decided or recorded, "look" where less is learned
 * than could be. about: the arm or objective, where it is about one.
 */
export interface Alert {
  code: string;
  level: "act" | "look";
  sentence: string;
  about: string | null;
}

/** A server-sent event. data, in JSON: what happened (StreamUpdate), or how many updates a slow reader missed. */
export interface StreamEvent {
  event: "missed" | "update";
  data: string;
}

/** A sign of life. */
export interface Health {
  status: "ok";
}

/**
 * What every error is answered with: its status, a code for programs, a sentence, and the field that it is about.
 *
 * The codes stay as they are; sentences may improve. field: only where the error is about one.
 */
export interface ProblemBody {
  title: string;
  status: number;
  code: "unknown_decision" | "unknown_arm" | "unknown_experiment" | "arm_not_chosen" | "feedback_conflict" | "decision_conflict" | "experiment_conflict" | "key_conflict" | "expired_decision" | "invalid" | "malformed" | "unauthorized" | "forbidden" | "not_found" | "method_not_allowed" | "body_timeout" | "too_large" | "not_json" | "rate_limited" | "failed" | "unavailable";
  detail: string;
  field?: string | undefined;
  type?: string | undefined;
}

/** What every operation takes and answers, by its name. */
export interface Operations {
  /** Tell what came of a decision. The same again is answered like the first time; something else is refused. */
  giveFeedback: { given: { id: string; body: FeedbackBody }; answer: Feedback };
  /** Choose an arm for a user, or rank the best k. With an Idempotency-Key the request can be repeated. */
  decide: { given: { body: DecisionBody; key?: string }; answer: Decision };
  /** Choose for many users at once. */
  decideMany: { given: { body: DecisionBatch }; answer: Decisions };
  /** Tell what came of many decisions at once; each has its own result. */
  giveFeedbackToMany: { given: { body: FeedbackBatch }; answer: FeedbackResults };
  /** Return a decision, why it was made, and its feedback. */
  getDecision: { given: { id: string }; answer: ExplainedDecision };
  /** Return what a user cares about, with intervals; for a new user, what users have in common. */
  getPreference: { given: { id: string }; answer: Preference };
  /** Return how what is known of a user's preference moved from feedback to feedback. */
  getPreferenceHistory: { given: { id: string; query?: { points?: number } }; answer: PreferenceHistory };
  /** Return a user's decisions, why they were made, and their feedback; the newest first, a page at a time. */
  getDecisions: { given: { id: string; query?: { limit?: number; before?: number } }; answer: UserDecisions };
  /** Find users who gave feedback by the beginning of their ids; those who gave most come first. */
  findUsers: { given: { query?: { query?: string; limit?: number } }; answer: UsersFound };
  /** Return everything that is kept of a user. */
  exportUser: { given: { id: string }; answer: UserExport };
  /** Forget a user; the arms keep what they learned. */
  eraseUser: { given: { id: string }; answer: undefined };
  /** Return all arms. */
  getArms: { given: Record<string, never>; answer: ArmList };
  /** Offer many arms from now on, as putArm does one; nothing is recorded if one of them is wrong. */
  putArms: { given: { body: ArmBatch }; answer: ArmList };
  /** Let arms, or users, have more features from now on; the same again changes nothing. */
  declareFeatures: { given: { body: FeaturesBody }; answer: Features };
  /** Return an arm. */
  getArm: { given: { id: string }; answer: Arm };
  /** Offer an arm from now on; a retired one is revived, and one with another name renamed. */
  putArm: { given: { id: string; body?: ArmBody }; answer: Arm };
  /** Offer an arm no longer; late feedback still counts. */
  retireArm: { given: { id: string }; answer: Arm };
  /** Return the active arms, those on the Pareto front first, with confidence. */
  getFront: { given: { query?: { x?: string; y?: string; limit?: number } }; answer: Front };
  /** Return the active arms by an objective's mean, with intervals, a page at a time. */
  getLeaderboard: { given: { query?: { objective?: string; sort?: "mean" | "name" | "pulls" | "typical"; order?: "ascending" | "descending"; search?: string; offset?: number; limit?: number } }; answer: Leaderboard };
  /** Rank the arms for somebody with these weights, by what is known of them; nothing is decided or recorded. */
  rankArms: { given: { query?: { limit?: number }; body: RankingBody }; answer: Ranking };
  /** Return how the groups of the newest experiment compare, with intervals that hold however often one looks. */
  getExperiment: { given: Record<string, never>; answer: ExperimentFound };
  /** Serve control, and any variants, otherwise from now on; the same again changes nothing. */
  startExperiment: { given: { body: ExperimentBody }; answer: Experiment };
  /** Serve everybody alike again; late feedback to the experiment's decisions still counts. */
  endExperiment: { given: Record<string, never>; answer: Experiment };
  /** Return the objectives, the scale of the overall score, and the features that arms and users may have. */
  getObjectives: { given: Record<string, never>; answer: Objectives };
  /** Count arms, users, feedbacks, and decisions that wait for one. */
  getStatistics: { given: Record<string, never>; answer: Statistics };
  /** Return decisions and feedback over time, and what came back against what greed and chance would get. */
  getActivity: { given: { query?: { resolution?: "day" | "hour" | "minute" | "quarter-hour" | "second"; limit?: number } }; answer: ActivityReport };
  /** Tell what whoever looks after this should know: that feedback dries up, that nobody reports an objective, … */
  getAlerts: { given: Record<string, never>; answer: Alerts };
  /** Tell that it lives, and that a new start would not help. */
  getHealth: { given: Record<string, never>; answer: Health };
  /** Tell whether decisions and feedback can be recorded. */
  getReadiness: { given: Record<string, never>; answer: Health };
}
