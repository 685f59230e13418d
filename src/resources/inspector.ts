/** An inspector and the requests it received, as the API returns them. */
import {
  INSPECTOR_STATUS,
  type Inspector,
  MAX_INSPECTOR_DELAY_MS,
  SIGNATURE_VERDICTS,
} from '../model/inspector.ts';
import { boolean, choice, integer, map, named, nullable, object, text, time } from '../std/shape.ts';
import type { Inspection } from '../webhooks/inspection.ts';
import { IDS, QUEUED } from './examples.ts';

/** How an inspector responds. */
export const inspectorResponse = {
  status: integer(
    'HTTP status to respond with. 410 unsubscribes the webhook; any other status outside 2xx causes a retry',
    {
      minimum: INSPECTOR_STATUS.least,
      maximum: INSPECTOR_STATUS.most,
    },
  ),
  delayMs: integer('Delay before the response, in milliseconds', {
    minimum: 0,
    maximum: MAX_INSPECTOR_DELAY_MS,
  }),
};

export const inspectorResource = named(
  'Inspector',
  object({
    id: text(),
    url: text('URL of the inspector. Anyone who knows the URL can send requests to it'),
    ...inspectorResponse,
    received: integer('Number of requests received so far. Only the newest 100 are stored'),
    refusal: nullable(
      text(
        'Reason why the network policy (`FLOWHOOK_ALLOW_NETWORKS`) blocks deliveries to this inspector. `null` if they are allowed',
      ),
    ),
    createdAt: time(),
    expiresAt: time(
      'Time when the inspector and its stored requests are deleted (24 hours after its creation)',
    ),
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
    number: integer('Request number, counting from 1'),
    receivedAt: time(),
    method: text(),
    path: text('Path and query string'),
    headers: map(text(), 'Header values by lowercase name. Repeated headers are joined with commas'),
    body: text('First 64 KiB of the body, as UTF-8'),
    bodyBytes: integer('Number of bytes of the body that were read, including those that are not stored'),
    truncated: boolean('`true` if only the first 64 KiB of the body are stored'),
    signature: object({
      verdict: choice(
        SIGNATURE_VERDICTS,
        'Result of the signature check. `expired`: valid signature, timestamp too far from now; `absent`: no signature',
      ),
      message: text('Human-readable result'),
      webhookId: nullable(text('ID of the webhook whose secret made the `v1` signature. `null` if none did')),
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

/** @param refusal why deliveries are blocked: the same for all inspectors, because they share a host */
export function shownInspector(inspection: Inspection, of: Inspector, refusal: string | null) {
  return inspectorResource.of({ ...of, url: inspection.urlOf(of.id), refusal });
}
