// The types of the service's API. Written by generate.py from the OpenAPI document: do not edit, run `make client`.

/** The tenant and the role of a key. */
export interface AccessOut {
  tenant: string;
  role: "read" | "decide" | "admin" | "label";
  /** Every role whose requests it may make. */
  may: ("read" | "decide" | "admin" | "label")[];
  /** The experiment of the mirror that this service belongs to; null if it belongs to none. */
  mirror: string | null;
}

/** An arm that the one at the gate is compared with. */
export interface ArmDifferenceOut {
  arm: string | number;
  /** The mean loss of the arm at the gate minus that of this one: below 0 if the arm is better. */
  difference: IntervalOut;
}

/** One arm at each point; counts are since the experiment was created. */
export interface ArmHistoryOut {
  arm: string | number;
  retired: boolean;
  exploited: number[];
  explored: number[];
  /** Its mean loss, as it was known then, with its interval. */
  loss: IntervalsOut;
}

/** The mean loss of one arm. */
export interface ArmLossOut {
  arm: string | number;
  /** How many losses of it were seen. */
  observed: number;
  /** Its mean loss, on the experiment's own scale. */
  loss: IntervalOut;
}

/** The mean loss of one arm over the observed decisions. */
export interface ArmValueOut {
  arm: string | number;
  observed: number;
  /** The mean loss with its interval; null if the log cannot tell. */
  value: IntervalOut | null;
}

/** Arms to add or to retire. */
export interface ArmsIn {
  arms: (string | number)[];
}

/** One change: what, when, by whom, and what it was before. */
export interface AuditEntryOut {
  id: number;
  at: string;
  tenant: string;
  action: string;
  /** The experiment, the id of the key, or the file that was changed. */
  subject: string;
  /** `key ID`, `address ADDRESS` (of a service without keys), `command line`, or `program`. */
  caller: string;
  /** The label of the key, or the user of the command line. */
  label: string;
  /** The id of the request that made the change. */
  request_id: string | null;
  /** What was changed, as it was before; null if there was nothing. */
  old: unknown;
  /** What was changed, as it is now; null if there is nothing. */
  new: unknown;
}

/** A page of changes, newest first. */
export interface AuditOut {
  entries: AuditEntryOut[];
  /** Pass it as `before` for the next page; null on the last. */
  next: number | null;
}

/** A backup that was written to the folder of --backups. */
export interface BackupOut {
  file: string;
  bytes: number;
  sha256: string;
}

/** A budget for exploring. What is left out has no limit. */
export interface BudgetIn {
  /** The probability with which a decision may explore, by a seeded coin. */
  share?: number | null;
  /** A number and seconds: at most so many decisions explore in any window of that length. */
  rate?: [number, number] | null;
  /**
   * The most that exploring an arm costs, its judgement included: one number, or a number for each arm. An arm that is left out costs as much as the most expensive. The amount is set aside until feedback has the real `cost`.
   */
  cost?: number | Record<string, number> | null;
  /** At most this much is spent in all. */
  total?: number | null;
  /** An amount and seconds: at most this much is spent in each period of that length since 1970 (UTC). */
  allowance?: [number, number] | null;
  /** The probability with which a decision may explore once the verdict is decided, until an alarm. */
  decided_share?: number | null;
  /** The mean number of explored decisions until a false alarm, at least; 100,000 if it is left out. */
  alarm_every?: number | null;
}

/** The budget of an experiment; null where there is no limit. */
export interface BudgetOut {
  share: number | null;
  rate: [number, number] | null;
  cost: number | Record<string, number> | null;
  total: number | null;
  allowance: [number, number] | null;
  decided_share: number | null;
  alarm_every: number | null;
}

/** What to decide; an empty body asks for one decision with both arms. */
export interface DecideIn {
  /**
   * both: an arm to use and an arm to try. exploit: only an arm to use, which takes no feedback. explore: only an arm to try.
   */
  mode?: "both" | "exploit" | "explore";
  /** The number of decisions, returned in a list; if left out: one decision, by itself. */
  count?: number | null;
  /** The arms that are available now; if left out: all. */
  available?: (string | number)[] | null;
  /**
   * A session or a user that should be served the same arm again; if left out: a fresh draw. It draws `exploit` and nothing else. A string of 1 to 1,024 bytes in UTF-8, or a whole number, which is the same key as its digits. The setting `log_keys` of the experiment says how it is logged.
   */
  key?: string | number | null;
  /** Stored with the decision, to filter by. They do not affect decisions. */
  tags?: Record<string, unknown> | null;
  /**
   * The losses that you expect of the arms in this decision, by arm, in the experiment's loss range. They are stored with it and make evaluations less noisy; they change nothing that is drawn or learned.
   */
  baseline?: Record<string, number> | null;
  /**
   * What is known of the request before it is decided, by the fields that the experiment declares. It is stored with the decision, and a contextual policy learns from it. A vector is a text of any length or a list of numbers; what is stored of it is its projection, `prompt.0` and so on.
   */
  context?: Record<string, string | number | boolean | null | number[]> | null;
  /** What the advisers that the policy names would exploit: an arm, or probabilities by arm. */
  advice?: Record<string, string | number | Record<string, number>> | null;
  /** Also answer why a contextual policy drew `exploit`. */
  why?: boolean;
}

/** The decisions of a request with `count`. */
export interface DecisionList {
  decisions: DecisionOut[];
}

/** A decision: use `exploit`, try `explore`, and send back the loss of `explore`. */
export interface DecisionOut {
  id: string;
  experiment: string;
  mode: "both" | "exploit" | "explore";
  /** The arm to use. You suffer its loss, and never send it back. */
  exploit: string | number | null;
  /** The arm to try. *Its* loss is the feedback. */
  explore: string | number | null;
  /** Null if the decision takes no feedback (mode exploit). */
  send_feedback: SendFeedback | null;
  /** The probability with which `explore` was drawn; null if only `weight` is known. */
  propensity: number | null;
  /** An unbiased estimate of 1 / propensity, which learning uses. */
  weight: number | null;
  policy: string;
  /** The last row of the log that was part of the state it was drawn from. */
  state_version: number;
  made_at: string;
  expires_at: string | null;
  status: "pending" | "applied" | "expired" | "unobserved";
  /** The loss of the explored arm that was applied; with labels, the label, null if none was asked for. */
  loss: number | null;
  settled_at: string | null;
  /** The arm that the policy drew to exploit; another than `exploit` if a guardrail replaced it. */
  drawn: string | number | null;
  /** The guardrail that chose `exploit`: pinned, holdout, floor, incumbent, cheapest or frozen; null if the policy did. */
  guard: string | null;
  /**
   * The part of the budget that kept this decision from exploring, so that its mode is exploit: share, rate, total or allowance; null if none did.
   */
  limited_by: string | null;
  /** The tags that the caller attached. */
  tags: Record<string, string>;
  /** The losses that the caller predicted, by arm; null for none. */
  baseline: Record<string, number> | null;
  /**
   * The key that drew `exploit`, as logged: its keyed hash, or its text if the experiment's `log_keys` says so; null without a key, or if keys are not logged.
   */
  key: string | null;
  /**
   * What was known of the request, by field; texts are hashed if the experiment's `log_context` says so; null if nothing was.
   */
  context: Record<string, string | number | boolean> | null;
  /** What advisers said: an arm, or probabilities by arm; null for none. */
  advice: Record<string, string | number | Record<string, number>> | null;
  /** Whether it asks for a label, the true loss. */
  label: boolean;
  /** The probability with which it did; null without labels. */
  label_probability: number | null;
  /**
   * The judge's loss; null if nobody judged it. If it asks for a label, it is pending until the label arrives, whatever its `expires_at` says.
   */
  judged: number | null;
  /** How much the judge preferred what it saw first, from -1 to 1; null if that is not known. */
  position: number | null;
  /**
   * Only where a request asks for it, in mode both: why a contextual policy drew `exploit`. It is not stored: null if the request is repeated after the feedback, or after a restart.
   */
  why?: WhyOut | null;
}

/** A page of decisions. With filters it may be short, or empty, and not be the last. */
export interface DecisionPageOut {
  decisions: DecisionOut[];
  /** Pass it as `after` for the next page; null on the last. */
  next: string | null;
}

/** An experiment that is gone. */
export interface DeletedOut {
  name: string;
  deleted_at: string;
}

/** The arms that are down, such as those that fail a health check; all others are up. */
export interface DownIn {
  arms: (string | number)[];
}

/**
 * Who a flag is evaluated for: the targeting key, and the fields that the experiment declares as its context.
 *
 * Other fields are neither used nor stored.
 */
export interface EvaluationContext {
  /**
   * The user or the session: the `key` of the decision, which keeps its arm. Without one, or with an empty one, every evaluation is a new draw.
   */
  targetingKey?: string;
  [other: string]: unknown;
}

/** What providers send. Other fields are ignored, because later versions of the protocol may add some. */
export interface EvaluationIn {
  /** The evaluation context; an empty object will do. */
  context?: EvaluationContext;
}

/** The value of each arm and of the exploited arms, from the log, on the experiment's own scale of losses. */
export interface EvaluationOut {
  experiment: string;
  method: string;
  /** The probability with which all intervals hold, at every moment at once. */
  level: number;
  decisions: number;
  observed: number;
  arms: ArmValueOut[];
  /** The mean loss of the exploited arms, with its interval. */
  exploited: IntervalOut | null;
  remark: string | null;
  /**
   * The mean loss of the arms that the policy drew to exploit, with its interval: what it would have been without guardrails.
   */
  drawn: IntervalOut | null;
}

/** The settings of an experiment. All but the arms, the guardrails and the budget are fixed when it is created. */
export interface ExperimentIn {
  /**
   * A policy by name and parameters; parameters left out take their defaults. An experiment that names no policy runs Ladder().
   */
  policy?: Record<string, unknown>;
  /** The names of the arms, or their number: then they are called 0, 1, 2, ... */
  arms?: (string | number)[] | number;
  /** The lowest and the highest possible loss. */
  loss_range?: number[];
  /**
   * Feedback that arrives later than this after its decision is refused (410). None: never, and verdicts wait an hour for it.
   */
  deadline_seconds?: number | null;
  /** The loss of an expired decision. None: it is left out. */
  expired_loss?: number | null;
  /** Seed of the draws, for tests. None: fresh randomness. It is never shown. */
  seed?: number | null;
  /** Whether it is only for test traffic. The console sends made-up losses only to such experiments. */
  demo?: boolean;
  /** What is sent back: the loss (or reward) of the explored arm, or a preference between the two arms of a decision. */
  feedback?: "loss" | "preference";
  /** The guardrails that it starts with. */
  guardrails?: GuardrailsIn | null;
  /** The budget for exploring that it starts with. */
  budget?: BudgetIn | null;
  /** The probability that its intervals or its verdict are ever wrong. */
  risk?: number;
  /**
   * Whether losses may drift. False needs a policy without contexts and feedback without preferences. It narrows the intervals, and is right only if no arm's mean loss ever changes.
   */
  drift?: boolean;
  /**
   * How many newer decisions wait, in its intervals and its verdict, for one without feedback. After that it counts as `expired_loss` there, or is left out and counted. None: 1,000, or the deadline of labels.
   */
  patience?: number | null;
  /**
   * How many decisions ask for a label, if losses come from a judge. What is learned, and every verdict, is then about the labels, for any judge that judges every decision. None: losses are true.
   */
  labels?: LabelsIn | null;
  /**
   * How the log stores keys. hashed: a hash with a secret of the experiment, never the text. plain: the text. off: not at all. The arm of a key does not depend on it.
   */
  log_keys?: "hashed" | "plain" | "off";
  /**
   * The fields of the contexts of decisions, and their types: text (also for whole numbers), number, boolean or vector. Fields that a contextual policy learns from need not be declared: they are text, number and vector.
   */
  context?: Record<string, "text" | "number" | "boolean" | "vector">;
  /** What to do if a context has other fields. refuse: 422. ignore: they are dropped. */
  unknown_context?: "refuse" | "ignore";
  /**
   * How texts of contexts are logged, and learned by a contextual policy. plain: the text. hashed: a hash with a secret of the experiment.
   */
  log_context?: "plain" | "hashed";
  /**
   * A saved learner that the experiment starts from, as the text that `Learner.to_json` wrote. Policy, arms, loss range and random stream come with it, and so do guardrails, risk and drift unless they are given.
   */
  learner?: string | null;
}

/** A page of experiments. */
export interface ExperimentList {
  experiments: ExperimentOut[];
  /** Pass it as `after` for the next page; null on the last. */
  next: string | null;
}

/** An experiment as it is now. */
export interface ExperimentOut {
  name: string;
  policy: Record<string, unknown>;
  /** The policy in a few words. */
  policy_label: string;
  /** The arms that can be chosen now. */
  arms: (string | number)[];
  retired: (string | number)[];
  loss_range: number[];
  deadline_seconds: number | null;
  expired_loss: number | null;
  created_at: string;
  archived_at: string | null;
  /** Whether it was created for test traffic. */
  demo: boolean;
  feedback: "loss" | "preference";
  /** The probability that its intervals or its verdict are ever wrong. */
  risk: number;
  /** Whether its intervals allow for losses that drift. */
  drift: boolean;
  /** How many newer decisions wait for one without feedback. */
  patience: number;
  /** How many decisions ask for a label; null if losses are true. */
  labels: LabelsOut | null;
  /** The guardrails in effect. */
  guardrails: GuardrailsOut;
  /** The budget in effect. */
  budget: BudgetOut;
  state_version: number;
  /**
   * compiling: its policy is new to this machine, and decisions are refused with 503 until it is ready; failed: the policy does not compile here, and `problem` says why.
   */
  status: "compiling" | "ready" | "failed" | "archived";
  problem: string | null;
  log_keys: "hashed" | "plain" | "off";
  /** The fields of contexts, and their types. */
  context: Record<string, "text" | "number" | "boolean" | "vector">;
  unknown_context: "refuse" | "ignore";
  log_context: "plain" | "hashed";
  /** The SHA-256 digest of the saved learner that it started from; null if it started anew. */
  imported: string | null;
}

/** Feedback for many decisions; if one is refused, the others are still applied. */
export interface FeedbackBatchIn {
  items: FeedbackItem[];
}

/** A result for each item, in their order. */
export interface FeedbackBatchOut {
  results: FeedbackResult[];
}

/**
 * The loss of the *explored* arm, or its reward, or a preference between both arms: exactly one of them.
 *
 * In an experiment with labels: what a judge said, `judged`, and the label as one of them if it is known already.
 */
export interface FeedbackIn {
  /** The observed loss of the *explored* arm, in the experiment's loss range. Never that of the exploited arm. */
  loss?: number | boolean;
  /** Instead of a loss: its mirror image in the loss range. */
  reward?: number | boolean;
  /**
   * Instead of a loss: which of the two arms did better, or tie. Only for experiments that were created with feedback preference.
   */
  preference?: "explore" | "tie" | "exploit";
  /** The arm whose loss it is, as a safeguard: any but the explored arm is refused (422). */
  arm?: string | number | null;
  /**
   * The judge's loss of the explored arm, or its preference if these are the feedback. Only for experiments with labels.
   */
  judged?: number | boolean | "explore" | "tie" | "exploit";
  /** How much the judge preferred what it saw first: 1 if that won, -1 if the second did, 0 for a tie. */
  position?: number;
  /** The real cost of exploring and judging. It replaces what the budget set aside. */
  cost?: number;
}

/** Feedback for one decision of a batch. */
export interface FeedbackItem {
  /** The observed loss of the *explored* arm, in the experiment's loss range. Never that of the exploited arm. */
  loss?: number | boolean;
  /** Instead of a loss: its mirror image in the loss range. */
  reward?: number | boolean;
  /**
   * Instead of a loss: which of the two arms did better, or tie. Only for experiments that were created with feedback preference.
   */
  preference?: "explore" | "tie" | "exploit";
  /** The arm whose loss it is, as a safeguard: any but the explored arm is refused (422). */
  arm?: string | number | null;
  /**
   * The judge's loss of the explored arm, or its preference if these are the feedback. Only for experiments with labels.
   */
  judged?: number | boolean | "explore" | "tie" | "exploit";
  /** How much the judge preferred what it saw first: 1 if that won, -1 if the second did, 0 for a tie. */
  position?: number;
  /** The real cost of exploring and judging. It replaces what the budget set aside. */
  cost?: number;
  /** The decision's id. */
  decision: string;
}

/** The result for one item: 200 and the decision, or another status and the problem. */
export interface FeedbackResult {
  id: string;
  status: number;
  decision?: DecisionOut | null;
  problem?: Problem | null;
}

/** A flag: the arm to use, from a decision that was drawn for this evaluation. */
export interface FlagOut {
  /** The name of the experiment. */
  key: string;
  /** The arm to use. */
  value: string | number;
  /** The arm as a string. */
  variant: string;
  /** STATIC if the arm is pinned, and SPLIT otherwise. */
  reason: "SPLIT" | "STATIC";
  /**
   * `decision`, its id; `policy`; `state_version`; if a guardrail chose the arm, also `guard`, and `drawn`, the arm that the policy drew.
   */
  metadata: Record<string, string | number>;
}

/** An error of the service, with the fields in which providers of OpenFeature look for it. */
export interface FlagProblem {
  type: string;
  title: string;
  status: number;
  /** What was wrong, by which rule, and what to do. */
  detail: string;
  /** Each field that is wrong, if there are several. */
  errors?: Record<string, string>[];
  /** The id of the request, as in X-Request-Id; the service's log has it, too. */
  request_id?: string;
  /** The flag. */
  key?: string | null;
  errorCode: "PARSE_ERROR" | "INVALID_CONTEXT" | "TARGETING_KEY_MISSING" | "FLAG_NOT_FOUND" | "GENERAL";
  /** The same as `detail`. */
  errorDetails: string;
}

/** Every flag: each experiment that is not archived, in the order of their names. */
export interface FlagsOut {
  flags: (FlagOut | FlagProblem)[];
}

/** Whether an arm is shown to be no worse than others by more than a margin. */
export interface GateOut {
  experiment: string;
  arm: string | number;
  /** Whether `state` is what was asked for with `when`. */
  open: boolean;
  /** passed: every difference lies below `margin`; failed: one lies above it; waiting: neither is shown. */
  state: "passed" | "failed" | "waiting";
  text: string;
  margin: number;
  against: ArmDifferenceOut[];
  /**
   * The largest probability that a gate of this experiment is ever wrong about the mean difference so far, whatever you ask and when.
   */
  risk: number;
  observed: number;
  state_version: number;
}

/** Guardrails to set. Those that are left out stay as they are; null removes a rule. */
export interface GuardrailsIn {
  /** The arm that every decision exploits: the kill switch. */
  pinned?: string | number | null;
  /** The least probability of exploiting each of these arms. They replace all floors. */
  floors?: Record<string, number> | null;
  /** The share of decisions that exploit `control`. */
  holdout?: number | null;
  /** The arm of the hold-out; null draws an available arm evenly. */
  control?: string | number | null;
  /** The arm to exploit until the observed losses show that another is better. */
  incumbent?: string | number | null;
  /**
   * The largest probability that the incumbent is ever left while no other arm is better, and that `cheapest_within` ever serves an arm that is worse by more than its margin.
   */
  risk?: number | null;
  /** Whether losses may drift. If no arm's mean loss ever changes, false may find a better arm sooner. */
  drift?: boolean | null;
  /** Arms that are unavailable while they are on this list. */
  down?: (string | number)[] | null;
  /**
   * Exploit the cheapest arm whose loss is known to be within this of every other arm's. `prices` must have the price of every arm.
   */
  cheapest_within?: number | null;
  /** The price of each arm, in any unit. They replace all prices. */
  prices?: Record<string, number> | null;
  /**
   * Keys draw from a law that stays, until an arm's estimated mean loss is lower than that of the law by more than this.
   */
  switch_margin?: number | null;
}

/** The guardrails of an experiment. */
export interface GuardrailsOut {
  pinned: string | number | null;
  floors: Record<string, number>;
  holdout: number;
  control: string | number | null;
  incumbent: string | number | null;
  risk: number;
  drift: boolean;
  down: (string | number)[];
  cheapest_within: number | null;
  prices: Record<string, number>;
  switch_margin: number | null;
}

/** The service is there. */
export interface HealthOut {
  status: string;
}

/** Counts and mean losses at some points of the log. The last point is now. */
export interface HistoryOut {
  experiment: string;
  /** The probability with which all intervals hold, at every moment at once. */
  level: number;
  /** The time from which losses count, if an earlier part of the log was dropped before sequences were kept. */
  since: string | null;
  /** The time of each point. */
  at: string[];
  /** The decisions made until each point. */
  decisions: number[];
  /** The losses learned until each point. */
  observed: number[];
  /** The decisions that exploited an arm until each point. */
  exploited: number[];
  /** The decisions that explored an arm until each point. */
  explored: number[];
  /** All arms that there ever were; of more than 20, those that were exploited most. */
  arms: ArmHistoryOut[];
  /** How many other arms there were. */
  others: number;
}

/** An estimate with the ends of its interval, a confidence sequence. */
export interface IntervalOut {
  estimate: number;
  /**
   * The lower end of the interval. The interval holds at every moment at once, with probability 1 - `risk` of the experiment: you may look as often as you like, and stop when you like.
   */
  low: number;
  /**
   * The upper end of the interval. The interval holds at every moment at once, with probability 1 - `risk` of the experiment: you may look as often as you like, and stop when you like.
   */
  high: number;
}

/** A mean loss at each point; null where nothing was seen. */
export interface IntervalsOut {
  estimate: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
}

/** What labels say about a judge. All intervals hold at every moment at once. */
export interface JudgeOut {
  /** The mean of 1 - |judged - label|, for losses from 0 to 1: of losses 0 and 1, how often it is right. */
  agreement: IntervalOut;
  /** By arm, the mean of judged loss minus label: above 0 if it is too harsh on the arm. */
  bias: Record<string, IntervalOut>;
  /** How often it preferred what it saw first, minus how often the second; null if that is not known. */
  position_bias: IntervalOut | null;
  /** How many labels these are over. */
  labels: number;
  /** How many never arrived, and count as declared. */
  missing: number;
  /** How many decisions were judged and await their label. */
  awaiting: number;
  /** How much the judge counts in the next decision, from 0 to 1. */
  lam: number;
}

/** The true loss of the *explored* arm, or its reward, or a preference between both arms: exactly one of them. */
export interface LabelIn {
  /** The observed loss of the *explored* arm, in the experiment's loss range. Never that of the exploited arm. */
  loss?: number | boolean;
  /** Instead of a loss: its mirror image in the loss range. */
  reward?: number | boolean;
  /**
   * Instead of a loss: which of the two arms did better, or tie. Only for experiments that were created with feedback preference.
   */
  preference?: "explore" | "tie" | "exploit";
}

/** The decisions that were judged and await a label, and the labels so far. */
export interface LabelQueueOut {
  experiment: string;
  /** How many labels were learned from. */
  used: number;
  /** How many did not arrive in time, and count as the experiment declares. */
  missing: number;
  /** How many decisions were judged and await their label. */
  awaiting: number;
  /** How much the judge counts in the next decision, from 0 to 1. */
  lam: number;
  /** The decisions that await a label, oldest first. */
  decisions: DecisionOut[];
}

/** The label is on disk. */
export interface LabelledOut {
  status: "labelled";
}

/** How many decisions ask for a label: the true loss of the explored arm. */
export interface LabelsIn {
  /** The probability that a decision asks for a label. */
  share?: number;
  /** This many decisions ask for one at the start. */
  first?: number;
  /** After this many newer decisions a label no longer counts. */
  deadline?: number;
  /** What a missing label counts as: from 0, the lowest loss, to 1, the highest. */
  missing?: number;
}

/** How many decisions ask for a label. */
export interface LabelsOut {
  share: number;
  first: number;
  deadline: number;
  missing: number;
}

/** What to label next. */
export interface LeaseOut {
  /** null if no pair is free. */
  pair: LeasedOut | null;
  /** How many pairs await a label, this one and those of others included. */
  waiting: number;
}

/** A pair: a request, and its two answers in an order drawn at random. */
export interface LeasedOut {
  /** Names the pair when you label it. */
  lease: string;
  /** After this somebody else may get it. */
  leased_until: string;
  title: string;
  request: string;
  first: string;
  second: string;
}

/** An attribute of a log record. */
export interface LogAttribute {
  key: string;
  /** Its value, by its type. */
  value?: Record<string, unknown>;
}

/** A log record; those that are no evaluation are ignored. */
export interface LogRecord {
  eventName?: string;
  /**
   * `gen_ai.evaluation.score.value`, and the decision: `decoupled.decision`, or `gen_ai.response.id` if your program gave the completion the id of its decision.
   */
  attributes?: LogAttribute[];
}

/** Who wrote the records of a scope. */
export interface LogScope {
  name?: string;
}

/** Log records as OTLP over HTTP sends them, in JSON. Other fields are ignored. */
export interface LogsIn {
  resourceLogs?: ResourceLogs[];
}

/** OTLP's response: what was not taken must not be sent again. */
export interface LogsOut {
  partialSuccess: PartialSuccess;
}

/** The answers of the two arms of a decision, without anything private. */
export interface PairIn {
  /** What the person reads first. */
  title?: string;
  request: string;
  /** The answer of the exploited arm. */
  exploit: string;
  /** The answer of the explored arm. */
  explore: string;
  /** The loss if the explored answer is the better one; null for the lowest. */
  low?: number | null;
  /** The loss if it is the worse one; null for the highest. */
  high?: number | null;
  /** When it is deleted. */
  keep_days?: number;
}

/** The pair is kept. */
export interface PairKeptOut {
  id: string;
}

/** Which answer is better. */
export interface PairLabelIn {
  lease: string;
  choice: "first" | "second" | "tie";
}

/** What was not taken. */
export interface PartialSuccess {
  /** How many, as text. */
  rejectedLogRecords?: string;
  /** Why, for the first of them. */
  errorMessage?: string;
}

/** An error (RFC 9457): every error of the service has this shape. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  /** What was wrong, by which rule, and what to do. */
  detail: string;
  /** Each field that is wrong, if there are several. */
  errors?: Record<string, string>[];
  /** The id of the request, as in X-Request-Id; the service's log has it, too. */
  request_id?: string;
}

/** What was learned from a log. */
export interface Replayed {
  experiment: string;
  /** The rows of the log. */
  rows: number;
  /** How many of them were learned now. */
  learned: number;
  /** How many had been learned before, when the same log was sent. */
  already: number;
  /** Rows with a loss that could not explore every arm. */
  left_out: number;
  state_version: number;
  /** What may be claimed now, and what may be wrong with the log. */
  warnings: string[];
}

/** Log records of one program. */
export interface ResourceLogs {
  scopeLogs?: ScopeLogs[];
}

/** Which part of a log to drop. */
export interface RetentionIn {
  /** Rows before this moment are dropped. */
  before: string;
}

/** How many rows were dropped. */
export interface RetentionOut {
  dropped: number;
}

/** Log records of one scope. */
export interface ScopeLogs {
  /** What `decoupled` itself wrote is ignored. */
  scope?: LogScope;
  logRecords?: LogRecord[];
}

/** What is known of one segment. */
export interface SegmentOut {
  text: string;
  /** decided: one arm was shown to be better than every other; narrowed: some are out; open: none is. */
  state: "decided" | "narrowed" | "open";
  /** The arm that looks best of those left; null if no loss was seen. */
  best: string | number | null;
  /** The arms that may still be the best. */
  left: (string | number)[];
  /** The arms that were shown to be worse than another. They stay out until arms are added or retired. */
  out: (string | number)[];
  /**
   * The highest level at which the evidence of now shows the same, which is below 1 - `risk` if it has become less since `decided_at`; null while it is open.
   */
  sure: number | null;
  /** About how many more observations it takes to decide at this rate; null if it is decided, or not foreseeable. */
  more_observations: number | null;
  /**
   * paired: arms are compared two by two, in rounds weighted by the chance of the rarer one divided by a level of losses; running: all rounds count the same, as with contexts; stationary: by the losses seen of each, if no mean changes.
   */
  basis: "running" | "paired" | "stationary";
  /**
   * After how many observations it was decided, or the last arm that is out was shown to be worse. It holds as of that moment: losses may have drifted since. null while it is open.
   */
  decided_at: number | null;
  /** Decisions without a loss in time, which are left out. */
  left_out: number;
  /** Losses that are not in it yet: they wait for an earlier one. */
  waiting: number;
  /** The decision whose loss they wait for; null if none waits, and for a segment. */
  waiting_for: string | null;
  /** After how many more decisions that one is given up. */
  waiting_decisions: number | null;
  /** When it is given up if that comes first; null if it only awaits its label, or none waits. */
  waiting_until: string | null;
  /** Whether it rests on leaving out decisions without a loss in time: it is biased if late losses differ. */
  is_provisional: boolean;
  /** What is assumed about those left out, and about missing labels; null if there are none. */
  remark: string | null;
  /** With labels, what the judge alone would say; null without, and for a segment. */
  judge: string | null;
  /** A warning if the judge alone would decide for another arm than the labels do; otherwise null. */
  warning: string | null;
  arms: ArmLossOut[];
  /** The mean loss of the exploited arms. */
  exploited: IntervalOut | null;
  /** The value of each field, null if it was missing; null for all segments beyond the limit, which share one. */
  segment: Record<string, string | boolean | null> | null;
  /** Its share of the risk, by the order in which segments appeared. */
  risk: number;
  decisions: number;
  observed: number;
}

/** A verdict for each segment. They hold all together, at every moment at once. */
export interface SegmentsOut {
  experiment: string;
  /** The fields that tell segments apart. */
  by: string[];
  /** Which arm is best for which segment, where that is decided. */
  text: string;
  /** The largest probability that a verdict of any segment ever rules out an arm while it is not worse than another. */
  risk: number;
  drift: boolean;
  /** The time from which losses count, if an earlier part of the log was dropped before sequences were kept. */
  since: string | null;
  state_version: number;
  /** Those with the most losses first. */
  segments: SegmentOut[];
  /** How many segments are not listed. */
  others: number;
}

/** What to send back, and where. */
export interface SendFeedback {
  /** The explored arm: send the loss of this arm, and of no other. */
  loss_of: string | number;
  /** PUT it here. */
  to: string;
}

/** What an experiment has learned; lists are in the order of `arms`. */
export interface StateOut {
  experiment: string;
  state_version: number;
  round: number;
  arms: (string | number)[];
  /**
   * The exact probability of exploiting each arm next; with a contextual policy, in the given `context`, or for a request of which nothing is known.
   */
  exploitation: number[];
  /** The exact probability of exploring each arm next, likewise. */
  exploration: number[];
  /** The policy's estimate for each arm, from losses scaled to [0, 1]. */
  estimates: number[];
  plays_exploit: number[];
  plays_explore: number[];
  decisions: number;
  pending: number;
  applied: number;
  expired: number;
  /** Feedback refused because it came after the deadline. */
  late: number;
  /** The total regret of the exploited arms against the arm that looks best now; null if nothing can be compared. */
  regret: IntervalOut | null;
  /**
   * What counts against each limit of the budget now: the share of decisions that explored, those in the window of the rate, the money spent in all, and in this period, what is set aside included. `above` counts looks that cost more than was declared. With a `decided_share`, `decided` is 1 while it holds, and `alarms` counts those that ended it.
   */
  budget_used: Record<string, number>;
  /**
   * Whether another arm was found to be better than the incumbent, so that the policy chooses; null if the guardrails name no incumbent.
   */
  incumbent_released: boolean | null;
}

/** Which arm is best, as far as that is decided. You may look as often as you like, and stop when you like. */
export interface VerdictOut {
  text: string;
  /** decided: one arm was shown to be better than every other; narrowed: some are out; open: none is. */
  state: "decided" | "narrowed" | "open";
  /** The arm that looks best of those left; null if no loss was seen. */
  best: string | number | null;
  /** The arms that may still be the best. */
  left: (string | number)[];
  /** The arms that were shown to be worse than another. They stay out until arms are added or retired. */
  out: (string | number)[];
  /**
   * The highest level at which the evidence of now shows the same, which is below 1 - `risk` if it has become less since `decided_at`; null while it is open.
   */
  sure: number | null;
  /** About how many more observations it takes to decide at this rate; null if it is decided, or not foreseeable. */
  more_observations: number | null;
  /**
   * paired: arms are compared two by two, in rounds weighted by the chance of the rarer one divided by a level of losses; running: all rounds count the same, as with contexts; stationary: by the losses seen of each, if no mean changes.
   */
  basis: "running" | "paired" | "stationary";
  /**
   * After how many observations it was decided, or the last arm that is out was shown to be worse. It holds as of that moment: losses may have drifted since. null while it is open.
   */
  decided_at: number | null;
  /** Decisions without a loss in time, which are left out. */
  left_out: number;
  /** Losses that are not in it yet: they wait for an earlier one. */
  waiting: number;
  /** The decision whose loss they wait for; null if none waits, and for a segment. */
  waiting_for: string | null;
  /** After how many more decisions that one is given up. */
  waiting_decisions: number | null;
  /** When it is given up if that comes first; null if it only awaits its label, or none waits. */
  waiting_until: string | null;
  /** Whether it rests on leaving out decisions without a loss in time: it is biased if late losses differ. */
  is_provisional: boolean;
  /** What is assumed about those left out, and about missing labels; null if there are none. */
  remark: string | null;
  /** With labels, what the judge alone would say; null without, and for a segment. */
  judge: string | null;
  /** A warning if the judge alone would decide for another arm than the labels do; otherwise null. */
  warning: string | null;
  arms: ArmLossOut[];
  /** The mean loss of the exploited arms. */
  exploited: IntervalOut | null;
  experiment: string;
  /**
   * The largest probability that an arm is ever ruled out while it is not worse than another, by the mean difference so far, in rounds weighted by the chance of the rarer one divided by a level of losses.
   */
  risk: number;
  drift: boolean;
  observed: number;
  /** The time from which losses count, if an earlier part of the log was dropped before sequences were kept. */
  since: string | null;
  state_version: number;
  /** How much more the exploited arms cost, in all, than always using `regret_against` would have. */
  regret: IntervalOut | null;
  /** The arm that looks best now. */
  regret_against: string | number | null;
  /** How many decisions the regret is over: those observed that could explore every arm there is now. */
  compared: number;
  /** The arm that is exploited until another is known to be better. */
  incumbent: string | number | null;
  /** Whether another was found to be better; null if there is no incumbent. */
  incumbent_released: boolean | null;
  /** How far the judge can be trusted; null without labels. */
  judge_report: JudgeOut | null;
}

/** Why a contextual policy drew the arm that it exploits. */
export interface WhyOut {
  /** The rung that drew it. */
  rung: string;
  /**
   * The values that tell the segment apart, in the order of the policy's `segments`; null for what is not known. Texts are hashed if the experiment's `log_context` says so.
   */
  segment: (string | null)[];
  /** The probability with which each rung was drawn. */
  weights: Record<string, number>;
}

/** Every operation: what it takes in its path, its query and its body, and what it returns. */
export interface Operations {
  /** Whether the process responds */
  "GET /healthz": {
    path: object;
    query: object;
    body: undefined;
    response: HealthOut;
  };
  /** Counters of the whole instance, for Prometheus */
  "GET /metrics": {
    path: object;
    query: object;
    body: undefined;
    response: Blob;
  };
  /** Evaluate every experiment that is not archived, 200 at most */
  "POST /ofrep/v1/evaluate/flags": {
    path: object;
    query: object;
    body: EvaluationIn | undefined;
    response: FlagsOut;
  };
  /** Evaluate a flag: draw a decision with mode exploit, and return its arm */
  "POST /ofrep/v1/evaluate/flags/{key}": {
    path: { key: string };
    query: object;
    body: EvaluationIn | undefined;
    response: FlagOut;
  };
  /** Whether the store takes writes and the stored experiments can decide; 503 if not */
  "GET /readyz": {
    path: object;
    query: object;
    body: undefined;
    response: HealthOut;
  };
  /** What the key of this request may do */
  "GET /v1/access": {
    path: object;
    query: object;
    body: undefined;
    response: AccessOut;
  };
  /** Who changed what, newest first */
  "GET /v1/audit": {
    path: object;
    query: { subject?: string | null; action?: "experiment.create" | "experiment.archive" | "experiment.delete" | "arms.add" | "arms.retire" | "guardrails.change" | "budget.set" | "incumbent.release" | "verdict.decide" | "log.drop" | "log.replay" | "key.add" | "key.rotate" | "key.revoke" | "backup.write" | "store.restore" | null; tenant?: string | null; before?: number | null; limit?: number };
    body: undefined;
    response: AuditOut;
  };
  /** Write a consistent copy of the whole store, while it runs, to a new file in the folder of --backups */
  "POST /v1/backups": {
    path: object;
    query: object;
    body: undefined;
    response: BackupOut;
  };
  /** A decision, its status, and the loss of its explored arm once that is applied */
  "GET /v1/decisions/{id}": {
    path: { id: string };
    query: object;
    body: undefined;
    response: DecisionOut;
  };
  /** Send the loss (or reward) of the *explored* arm, or a preference */
  "PUT /v1/decisions/{id}/feedback": {
    path: { id: string };
    query: object;
    body: FeedbackIn;
    response: DecisionOut;
  };
  /** Send the label of a decision that was judged and wants one: the true loss of the *explored* arm */
  "PUT /v1/decisions/{id}/label": {
    path: { id: string };
    query: object;
    body: LabelIn;
    response: DecisionOut;
  };
  /** Keep the two answers of a decision that was judged and awaits a label, until a person has seen them */
  "PUT /v1/decisions/{id}/pair": {
    path: { id: string };
    query: object;
    body: PairIn;
    response: PairKeptOut;
  };
  /** The experiments of this tenant, in the order of their names unless sorted otherwise */
  "GET /v1/experiments": {
    path: object;
    query: { after?: string | null; limit?: number; sort?: "name" | "-name" | "created_at" | "-created_at"; status?: "active" | "archived" | null; policy?: string | null; prefix?: string | null };
    body: undefined;
    response: ExperimentList;
  };
  /** Delete an experiment that was archived long enough ago (`--delete-after`, 30 days), with its whole log */
  "DELETE /v1/experiments/{name}": {
    path: { name: string };
    query: { confirm: string };
    body: undefined;
    response: DeletedOut;
  };
  /** One experiment */
  "GET /v1/experiments/{name}": {
    path: { name: string };
    query: object;
    body: undefined;
    response: ExperimentOut;
  };
  /** Create an experiment */
  "PUT /v1/experiments/{name}": {
    path: { name: string };
    query: object;
    body: ExperimentIn;
    response: ExperimentOut;
  };
  /** Stop making decisions */
  "POST /v1/experiments/{name}/archive": {
    path: { name: string };
    query: object;
    body: undefined;
    response: ExperimentOut;
  };
  /** Add arms; what is learned about the others stays */
  "POST /v1/experiments/{name}/arms": {
    path: { name: string };
    query: object;
    body: ArmsIn;
    response: ExperimentOut;
  };
  /** Retire arms: no decision chooses them again, and decisions already made still take feedback */
  "POST /v1/experiments/{name}/arms/retire": {
    path: { name: string };
    query: object;
    body: ArmsIn;
    response: ExperimentOut;
  };
  /** Set the budget for exploring; an empty object sets no limit */
  "PUT /v1/experiments/{name}/budget": {
    path: { name: string };
    query: object;
    body: BudgetIn;
    response: ExperimentOut;
  };
  /** The decisions of an experiment, the newest first */
  "GET /v1/experiments/{name}/decisions": {
    path: { name: string };
    query: { tag?: string[]; after?: string | null; limit?: number; sort?: "made_at" | "-made_at"; status?: "pending" | "applied" | "expired" | "unobserved" | null; mode?: "both" | "exploit" | "explore" | null };
    body: undefined;
    response: DecisionPageOut;
  };
  /** Draw a decision: an arm to use (`exploit`) and an arm to try (`explore`) */
  "POST /v1/experiments/{name}/decisions": {
    path: { name: string };
    query: object;
    body: DecideIn | undefined;
    response: DecisionOut | DecisionList;
  };
  /** Set the list of arms that are down, for a health check */
  "PUT /v1/experiments/{name}/down": {
    path: { name: string };
    query: object;
    body: DownIn;
    response: ExperimentOut;
  };
  /** The mean loss of every arm, and of the exploited arms, from the log alone, with their intervals */
  "GET /v1/experiments/{name}/evaluation": {
    path: { name: string };
    query: { tag?: string[] };
    body: undefined;
    response: EvaluationOut;
  };
  /** May this arm be promoted? */
  "GET /v1/experiments/{name}/gate": {
    path: { name: string };
    query: { arm: string; against?: string | null; margin?: number; when?: "passed" | "failed"; closed?: "409" | "200" };
    body: undefined;
    response: GateOut;
  };
  /** Answer a hook that asks whether an arm may be promoted, as GET does */
  "POST /v1/experiments/{name}/gate": {
    path: { name: string };
    query: { arm: string; against?: string | null; margin?: number; when?: "passed" | "failed"; closed?: "409" | "200" };
    body: undefined;
    response: GateOut;
  };
  /** Change what is served: a pinned arm (the kill switch), floors, a hold-out, an incumbent, arms that are down */
  "PATCH /v1/experiments/{name}/guardrails": {
    path: { name: string };
    query: object;
    body: GuardrailsIn;
    response: ExperimentOut;
  };
  /** Counts and mean losses, with their intervals, at up to `points` points of the log, the last of which is now */
  "GET /v1/experiments/{name}/history": {
    path: { name: string };
    query: { points?: number };
    body: undefined;
    response: HistoryOut;
  };
  /** The decisions that were judged and await a label, oldest first, and how many labels were used and are missing */
  "GET /v1/experiments/{name}/labels": {
    path: { name: string };
    query: { limit?: number };
    body: undefined;
    response: LabelQueueOut;
  };
  /** What the experiment has learned, with its random stream, as a saved learner: it goes on bit for bit */
  "GET /v1/experiments/{name}/learner": {
    path: { name: string };
    query: object;
    body: undefined;
    response: Record<string, unknown>;
  };
  /** The log, one row for each decision, with the exact probability with which `explore` was drawn */
  "GET /v1/experiments/{name}/log": {
    path: { name: string };
    query: { tag?: string[]; format?: "csv" | "parquet" };
    body: undefined;
    response: Blob;
  };
  /** Say which answer of the pair that you took is better */
  "POST /v1/experiments/{name}/pairs/label": {
    path: { name: string };
    query: object;
    body: PairLabelIn;
    response: LabelledOut;
  };
  /** Take the pair that has waited longest */
  "POST /v1/experiments/{name}/pairs/lease": {
    path: { name: string };
    query: object;
    body: undefined;
    response: LeaseOut;
  };
  /** Learn from a log: an export of this service, or of another system with the columns that evaluations read */
  "POST /v1/experiments/{name}/replay": {
    path: { name: string };
    query: { unrandomised?: boolean };
    body: Blob | string;
    response: Replayed;
  };
  /** Drop the log before a moment */
  "POST /v1/experiments/{name}/retention": {
    path: { name: string };
    query: object;
    body: RetentionIn;
    response: RetentionOut;
  };
  /** A verdict for each segment: for which requests which arm is best */
  "GET /v1/experiments/{name}/segments": {
    path: { name: string };
    query: { by?: string[]; limit?: number };
    body: undefined;
    response: SegmentsOut;
  };
  /** Exact probabilities, estimates, plays, pending decisions, and the regret with its interval */
  "GET /v1/experiments/{name}/state": {
    path: { name: string };
    query: { context?: string | null };
    body: undefined;
    response: StateOut;
  };
  /** Is it decided? */
  "GET /v1/experiments/{name}/verdict": {
    path: { name: string };
    query: object;
    body: undefined;
    response: VerdictOut;
  };
  /** Send the losses of the explored arms of many decisions; each has a result of its own */
  "POST /v1/feedback": {
    path: object;
    query: object;
    body: FeedbackBatchIn;
    response: FeedbackBatchOut;
  };
  /** Send evaluations as OpenTelemetry's `gen_ai.evaluation.result` events, by OTLP over HTTP with JSON */
  "POST /v1/logs": {
    path: object;
    query: { evaluation?: string | null; score?: "reward" | "loss" | "judged" };
    body: LogsIn;
    response: LogsOut;
  };
}
