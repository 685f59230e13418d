/** An inspector and its requests as callers see them. */
import type { InspectedRequest, Inspector } from '../../model/inspector.ts';
import { toIso } from '../../std/clock.ts';
import type { Inspection } from '../../webhooks/inspection.ts';

export type ShownInspector = ReturnType<typeof shownInspector>;
export type ShownInspected = ReturnType<typeof shownInspected>;

/** @param refusal of all of them alike: they have one host */
export function shownInspector(inspection: Inspection, inspector: Inspector, refusal: string | null) {
  const { id, status, delayMs, received, createdAt, expiresAt } = inspector;
  return {
    id,
    url: inspection.urlOf(id),
    status,
    delayMs,
    received,
    refusal,
    createdAt: toIso(createdAt),
    expiresAt: toIso(expiresAt),
  };
}

export function shownInspected(request: InspectedRequest & { number: number; receivedAt: number }) {
  const { number, receivedAt, method, path, headers, body, bodyBytes, truncated, signature } = request;
  return {
    number,
    receivedAt: toIso(receivedAt),
    method,
    path,
    headers,
    body,
    bodyBytes,
    truncated,
    signature: {
      verdict: signature.verdict,
      message: signature.message,
      webhookId: signature.webhookId,
    },
  };
}
