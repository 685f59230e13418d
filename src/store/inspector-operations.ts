/** Operations on inspectors: part of the Store; `store.ts` says what all operations have in common. */
import type { InspectedRequest, Inspector } from '../model/inspector.ts';

/** A webhook that may have signed a message. */
export interface Signer {
  webhookId: string;
  /** Sealed: the current one, then the previous one while it is still valid. */
  secrets: string[];
}

/** Expired inspectors are treated as if they did not exist. */
export interface InspectorOperations {
  /** Undefined if the team already has `most`. */
  create(input: {
    teamId: string;
    id: string;
    status: number;
    delayMs: number;
    forMs: number;
    most: number;
  }): Promise<Inspector | undefined>;
  /** A team's inspectors, oldest first. */
  list(input: { teamId: string }): Promise<Inspector[]>;
  /** By id alone, for requests sent to it. */
  find(input: { id: string }): Promise<Inspector | undefined>;
  /** Changes how it answers; what is not given stays. */
  change(input: {
    teamId: string;
    id: string;
    status?: number;
    delayMs?: number;
  }): Promise<Inspector | undefined>;
  /** Removes it with its requests; returns whether it existed. */
  remove(input: { teamId: string; id: string }): Promise<boolean>;
  /**
   * Stores a request, keeping only the newest `most`. Returns its number, counted from 1; undefined if the inspector is
   * gone. `workflowId` is that of the event in the request, so that erasing finds it.
   */
  storeRequest(input: {
    teamId: string;
    id: string;
    workflowId: string | null;
    request: InspectedRequest;
    most: number;
  }): Promise<number | undefined>;
  /** Its requests with numbers between `after` and `before`, both exclusive; newest first. */
  requests(input: {
    teamId: string;
    id: string;
    after?: number;
    before?: number;
    limit: number;
  }): Promise<(InspectedRequest & { number: number; receivedAt: number })[]>;
  /** Webhooks with a delivery of this event, and those with exactly this URL; at most `limit` of each. */
  signers(input: { teamId: string; eventId: string; url: string; limit: number }): Promise<Signer[]>;
  /** Deletes expired inspectors and their requests, at most `limit` of each per call; call until `done`. */
  prune(input: { limit: number }): Promise<{ done: boolean }>;
}
