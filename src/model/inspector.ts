/** An inspector: a temporary webhook receiver that the service provides for trying out webhooks. */

/** Maximum number of inspectors per team. */
export const MAX_INSPECTORS = 20;
/** An inspector keeps only its newest requests, up to this many. */
export const MAX_INSPECTED = 100;
/** An inspector is deleted after this time. */
export const INSPECTOR_MS = 24 * 3_600_000;
/** A stored request body is truncated to this size. */
export const MAX_INSPECTED_BYTES = 64 * 1_024;
/** Bounds of the HTTP status that an inspector can be set to return. */
export const INSPECTOR_STATUS = { least: 200, most: 599 };
export const MAX_INSPECTOR_DELAY_MS = 20_000;
/** Documentation example: an overloaded receiver. */
export const EXAMPLE_INSPECTOR = { status: 503, delayMs: 1_000 };

/** Times in epoch milliseconds. */
export interface Inspector {
  teamId: string;
  /** Unguessable. Anyone who knows the id can send requests to the inspector. */
  id: string;
  /** HTTP status and delay of its responses. */
  status: number;
  delayMs: number;
  /** Number of requests received, including those no longer stored. */
  received: number;
  createdAt: number;
  expiresAt: number;
}

/** A received request. */
export interface InspectedRequest {
  method: string;
  /** Path and query. */
  path: string;
  /** By lowercase name. Repeated headers are joined with commas. */
  headers: Record<string, string>;
  /** Decoded as UTF-8; invalid bytes become U+FFFD. */
  body: string;
  /** Length of the body, including the part that is not stored, as far as it was read. */
  bodyBytes: number;
  /** Whether `body` was truncated. */
  truncated: boolean;
  signature: InspectedSignature;
}

export const SIGNATURE_VERDICTS = ['valid', 'expired', 'invalid', 'absent'] as const;

/** The result of checking the signature of a request. */
export interface InspectedSignature {
  /** `expired`: valid signature, timestamp too far from now. */
  verdict: (typeof SIGNATURE_VERDICTS)[number];
  /** Explains the verdict. */
  message: string;
  /** The webhook whose secret matches the `v1` signature. */
  webhookId: string | null;
}
