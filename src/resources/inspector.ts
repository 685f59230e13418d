/** An inspector and its requests as callers see them. */
import {
  ANSWERED_STATUS,
  type InspectedRequest,
  type Inspector,
  MAX_ANSWER_DELAY_MS,
  SIGNATURE_VERDICTS,
} from '../model/inspector.ts';
import { toIso } from '../std/clock.ts';
import { isoTime } from '../std/shape.ts';
import type { Inspection } from '../webhooks/inspection.ts';

export type ShownInspector = ReturnType<typeof shownInspector>;
export type ShownInspected = ReturnType<typeof shownInspected>;

/** @param refusal the same for all inspectors, since they share a host */
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

/** How an inspector answers. */
export const answering = {
  status: {
    type: 'integer',
    minimum: ANSWERED_STATUS.least,
    maximum: ANSWERED_STATUS.most,
    description: 'What it answers; 410 unsubscribes a webhook, anything but 2xx is tried again',
  },
  delayMs: {
    type: 'integer',
    minimum: 0,
    maximum: MAX_ANSWER_DELAY_MS,
    description: 'How late it answers, in milliseconds',
  },
};

const inspector = {
  id: { type: 'string' },
  url: { type: 'string', description: 'Takes anything from anybody who knows it' },
  ...answering,
  received: { type: 'integer', description: 'Requests so far; the newest 100 are kept' },
  refusal: {
    type: ['string', 'null'],
    description:
      'Why webhooks of this service will not reach it, by FLOWHOOK_ALLOW_NETWORKS; null: they will',
  },
  createdAt: isoTime,
  expiresAt: { ...isoTime, description: 'When it goes, with all that it was sent' },
};
const inspected = {
  number: { type: 'integer', description: 'Counts from 1' },
  receivedAt: isoTime,
  method: { type: 'string' },
  path: { type: 'string', description: 'Path and query' },
  headers: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Names in lower case; what came more than once with commas between',
  },
  body: { type: 'string', description: 'Its first 64 KiB, as UTF-8' },
  bodyBytes: { type: 'integer', description: 'Of the whole body, as far as it was read' },
  truncated: { type: 'boolean', description: 'Whether only the beginning of the body is kept' },
  signature: {
    type: 'object',
    required: ['verdict', 'message', 'webhookId'],
    properties: {
      verdict: { enum: SIGNATURE_VERDICTS, description: '`expired`: right, but not of now' },
      message: { type: 'string', description: 'The same in plain words' },
      webhookId: { type: ['string', 'null'], description: 'Whose secret made the `v1` signature' },
    },
  },
};

/** The same as JSON Schema. */
export const inspectorSchema = {
  type: 'object',
  required: Object.keys(inspector),
  properties: inspector,
  examples: [
    {
      id: 'insp_5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d',
      url: 'http://127.0.0.1:8080/inspect/insp_5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d',
      status: 204,
      delayMs: 0,
      received: 1,
      refusal: null,
      createdAt: '2026-11-21T02:00:00.000Z',
      expiresAt: '2026-11-22T02:00:00.000Z',
    },
  ],
};

export const inspectedRequestSchema = {
  type: 'object',
  required: Object.keys(inspected),
  properties: inspected,
  examples: [
    {
      number: 1,
      receivedAt: '2026-11-21T02:00:01.000Z',
      method: 'POST',
      path: '/inspect/insp_5f0c3b7d9a1e4c2f8b6d7a9e0c1f2b3d',
      headers: {
        'content-type': 'application/json',
        'webhook-id': 'evt_01kadz8v3s7v0s8e1c3q5m2n4p',
        'webhook-timestamp': '1795226401',
        'webhook-signature': 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
      },
      body: '{"id":"evt_01kadz8v3s7v0s8e1c3q5m2n4p","type":"webhook_test"}',
      bodyBytes: 62,
      truncated: false,
      signature: {
        verdict: 'valid',
        message: 'Signed with the secret of webhook wh_01kadz8v3s7v0s8e1c3q5m2n4p (v1)',
        webhookId: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p',
      },
    },
  ],
};
