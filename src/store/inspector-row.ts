/** The rows of inspectors and their requests, and their mapping to the model; the same for both drivers. */
import type { InspectedRequest, Inspector } from '../model/inspector.ts';

export interface InspectorRow {
  team_id: string;
  id: string;
  status: number;
  delay_ms: number;
  received: number;
  created_at: number;
  expires_at: number;
}

export function toInspector(row: InspectorRow): Inspector {
  return {
    teamId: row.team_id,
    id: row.id,
    status: row.status,
    delayMs: row.delay_ms,
    received: row.received,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

export interface InspectedRow {
  number: number;
  received_at: number;
  /** JSON of the request without its body. */
  request: string;
  body: string;
}

export function toInspected({ number, received_at, request, body }: InspectedRow) {
  return {
    ...(JSON.parse(request) as Omit<InspectedRequest, 'body'>),
    body,
    number,
    receivedAt: received_at,
  };
}
