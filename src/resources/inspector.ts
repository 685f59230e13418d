/** An inspector and its requests as callers see them. */
import {
  INSPECTOR_STATUS,
  type Inspector,
  MAX_INSPECTOR_DELAY_MS,
  SIGNATURE_VERDICTS,
} from '../model/inspector.ts';
import { boolean, choice, integer, map, named, nullable, object, text, time } from '../std/shape.ts';
import type { Inspection } from '../webhooks/inspection.ts';
import { IDS, QUEUED } from './examples.ts';

/** How an inspector answers. */
export const answering = {
  status: integer('What it answers; 410 unsubscribes a webhook, anything but 2xx is tried again', {
    minimum: INSPECTOR_STATUS.least,
    maximum: INSPECTOR_STATUS.most,
  }),
  delayMs: integer('How late it answers, in milliseconds', { minimum: 0, maximum: MAX_INSPECTOR_DELAY_MS }),
};

export const inspectorResource = named(
  'Inspector',
  object({
    id: text(),
    url: text('Takes anything from anybody who knows it'),
    ...answering,
    received: integer('Requests so far; the newest 100 are kept'),
    refusal: nullable(
      text('Why webhooks of this service will not reach it, by FLOWHOOK_ALLOW_NETWORKS; null: they will'),
    ),
    createdAt: time(),
    expiresAt: time('When it goes, with all that it was sent'),
  }),
  {
    id: IDS.inspector,
    url: `http://127.0.0.1:8080/inspect/${IDS.inspector}`,
    status: 204,
    delayMs: 0,
    received: 1,
    refusal: null,
    createdAt: QUEUED,
    expiresAt: '2026-11-22T02:00:00.000Z',
  },
);

export const inspectedRequestResource = named(
  'InspectedRequest',
  object({
    number: integer('Counts from 1'),
    receivedAt: time(),
    method: text(),
    path: text('Path and query'),
    headers: map(text(), 'Names in lower case; what came more than once with commas between'),
    body: text('Its first 64 KiB, as UTF-8'),
    bodyBytes: integer('Of the whole body, as far as it was read'),
    truncated: boolean('Whether only the beginning of the body is kept'),
    signature: object({
      verdict: choice(SIGNATURE_VERDICTS, '`expired`: valid signature, timestamp too far from now'),
      message: text('The same in plain words'),
      webhookId: nullable(text('Whose secret made the `v1` signature')),
    }),
  }),
  {
    number: 1,
    receivedAt: '2026-11-21T02:00:01.000Z',
    method: 'POST',
    path: `/inspect/${IDS.inspector}`,
    headers: {
      'content-type': 'application/json',
      'webhook-id': IDS.event,
      'webhook-timestamp': '1795226401',
      'webhook-signature': 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
    },
    body: `{"id":"${IDS.event}","type":"webhook_test"}`,
    bodyBytes: 62,
    truncated: false,
    signature: {
      verdict: 'valid',
      message: `Signed with the secret of webhook ${IDS.webhook} (v1)`,
      webhookId: IDS.webhook,
    },
  },
);

/** @param refusal the same for all inspectors, since they share a host */
export function shownInspector(inspection: Inspection, of: Inspector, refusal: string | null) {
  return inspectorResource.of({ ...of, url: inspection.urlOf(of.id), refusal });
}
