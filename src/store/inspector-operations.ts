/** What can happen to inspectors: a part of the Store, see `store.ts` for what holds of all operations. */
import type { InspectedRequest, Inspector } from '../model/inspector.ts';

/** A webhook that may have signed a message. */
export interface Signer {
  webhookId: string;
  /** Sealed; the newest first, then the one before it while that still signs along. */
  secrets: string[];
}

/** One that has expired is as if it were not there. */
export interface InspectorOperations {
  /** Nothing when the team has `most` already. */
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
  /** By its id alone, for those who send to it. */
  find(input: { id: string }): Promise<Inspector | undefined>;
  /** Changes what it answers; what is not named stays. */
  change(input: {
    teamId: string;
    id: string;
    status?: number;
    delayMs?: number;
  }): Promise<Inspector | undefined>;
  /** Removes it with its requests; answers whether it was there. */
  remove(input: { teamId: string; id: string }): Promise<boolean>;
  /**
   * Keeps a request, and of all no more than the newest `most`. Answers its number, which counts from 1; nothing when
   * the inspector is gone. `workflowId` is that of the event in it, for erasing.
   */
  keep(input: {
    teamId: string;
    id: string;
    workflowId: string | null;
    request: InspectedRequest;
    most: number;
  }): Promise<number | undefined>;
  /** Its requests between two numbers, which are not among them; newest first. */
  requests(input: {
    teamId: string;
    id: string;
    after?: number;
    before?: number;
    limit: number;
  }): Promise<(InspectedRequest & { number: number; receivedAt: number })[]>;
  /** Webhooks that an event was, or is to be, delivered to, and those with exactly this URL: at most so many of each. */
  signers(input: { teamId: string; eventId: string; url: string; limit: number }): Promise<Signer[]>;
  /** Deletes what has expired, at most so many requests. To be called until done. */
  prune(input: { limit: number }): Promise<{ done: boolean }>;
}
