/** An inspector: a temporary receiver that the service offers to those who want to try webhooks without one of their own. */

/** Of one team. */
export const MAX_INSPECTORS = 20;
/** An inspector keeps so many requests, the newest. */
export const MAX_INSPECTED = 100;
/** How long one lives. */
export const INSPECTOR_MS = 24 * 3_600_000;
/** So many bytes of a body are kept. */
export const MAX_INSPECTED_BYTES = 64 * 1_024;
/** What it can be set to answer, and how late. */
export const ANSWERED_STATUS = { least: 200, most: 599 };
export const MAX_ANSWER_DELAY_MS = 20_000;
/** An example in the documentation: a receiver that is overloaded. */
export const EXAMPLE_ANSWER = { status: 503, delayMs: 1_000 };

/** Times in epoch milliseconds. */
export interface Inspector {
  teamId: string;
  /** Cannot be guessed; whoever knows it may send. */
  id: string;
  /** What it answers, and after how long. */
  status: number;
  delayMs: number;
  /** Requests so far, those included that are not kept any more. */
  received: number;
  createdAt: number;
  expiresAt: number;
}

/** A request as it came. */
export interface InspectedRequest {
  method: string;
  /** Path and query. */
  path: string;
  /** By name in lower case; what came more than once with commas between. */
  headers: Record<string, string>;
  /** As UTF-8; other bytes are U+FFFD. */
  body: string;
  /** Of the whole body, as far as it was read. */
  bodyBytes: number;
  /** Whether only the beginning is kept. */
  truncated: boolean;
  signature: InspectedSignature;
}

export const SIGNATURE_VERDICTS = ['valid', 'expired', 'invalid', 'absent'] as const;

/** Whether the signature of a request is right. */
export interface InspectedSignature {
  /** `expired`: it is right, but its time is not now. */
  verdict: (typeof SIGNATURE_VERDICTS)[number];
  /** The same in plain words. */
  message: string;
  /** Whose secret made the `v1` signature. */
  webhookId: string | null;
}
