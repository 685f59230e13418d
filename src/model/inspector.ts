/** An inspector: a temporary webhook receiver that the service provides for trying out webhooks. */

/** Maximum number of inspectors per team. */
export const MAX_INSPECTORS = 20;
/** Maximum number of requests that an inspector stores. The oldest requests are deleted first. */
export const MAX_INSPECTED = 100;
/** Time after which an inspector is deleted. */
export const INSPECTOR_MS = 24 * 3_600_000;
/** Maximum size of a stored request body. Longer bodies are truncated. */
export const MAX_INSPECTED_BYTES = 64 * 1_024;
/** Bounds of the HTTP status that an inspector can be set to return. */
export const INSPECTOR_STATUS = { least: 200, most: 599 };
export const MAX_INSPECTOR_DELAY_MS = 20_000;
/** Documentation example: an overloaded receiver. */
export const EXAMPLE_INSPECTOR = { status: 503, delayMs: 1_000 };

/** Times in epoch milliseconds. */
export interface Inspector {
  teamId: string;
  /** The id is unguessable, because anyone who knows it can send requests to the inspector. */
  id: string;
  /** HTTP status and delay of the responses that the inspector sends. */
  status: number;
  delayMs: number;
  /** Number of requests received, including requests that are no longer stored. */
  received: number;
  createdAt: number;
  expiresAt: number;
}

/** A received request. */
export interface InspectedRequest {
  method: string;
  /** Path and query. */
  path: string;
  /** Headers by lowercase name. The values of repeated headers are joined with commas. */
  headers: Record<string, string>;
  /** The body of the request, decoded as UTF-8; invalid bytes become U+FFFD. */
  body: string;
  /** Number of bytes of the body that were read, including the bytes that are not stored. */
  bodyBytes: number;
  /** Whether `body` was truncated. */
  truncated: boolean;
  signature: InspectedSignature;
}

export const SIGNATURE_VERDICTS = ['valid', 'expired', 'invalid', 'absent'] as const;

/** The result of checking the signature of a request. */
export interface InspectedSignature {
  /** `expired`: the signature is valid, but the timestamp is too far from the current time. */
  verdict: (typeof SIGNATURE_VERDICTS)[number];
  /** Explains the verdict. */
  message: string;
  /** The webhook whose secret matches the `v1` signature. */
  webhookId: string | null;
}
