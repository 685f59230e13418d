/** The quarantine of a workflow: records that did not meet an expectation. */
import { type ListOptions, type Pages, pagesOf } from './pages.ts';
import type {
  QuarantineAccepted,
  QuarantineDropped,
  QuarantinedRecord,
  QuarantinedRecordBeside,
} from './resources.ts';
import type { CallOptions, Transport } from './transport.ts';

/** Selects records in the quarantine. */
export interface QuarantineFilter {
  /** Only what this job has set aside. */
  jobId?: string | undefined;
  /** Only records with a reason about this field. */
  field?: string | undefined;
}

/** Records to accept or to drop: by their ids (at most 1,000), or all that match. */
export type QuarantineSelection = ({ ids: readonly string[] } | ({ all: true } & QuarantineFilter)) & {
  /** Leaves out what later jobs have set aside. */
  untilJobId?: string | undefined;
};

export class Quarantine {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The records in the quarantine, newest first. @throws NotFound */
  list(
    workflowId: string,
    { jobId, field, ...options }: ListOptions & QuarantineFilter = {},
  ): Pages<QuarantinedRecord> {
    const query = { jobId, field };
    return pagesOf(this.#transport, 'records', { ...options, path: pathOf(workflowId), query });
  }

  /** All records that match, as a response in the given format. @throws NotFound */
  as(
    format: 'ndjson' | 'csv',
    workflowId: string,
    { jobId, field, ...options }: CallOptions & QuarantineFilter = {},
  ): Promise<Response> {
    const query = { format, jobId, field };
    return this.#transport.stream({ ...options, path: pathOf(workflowId), query });
  }

  /** One record, with the published record of the same id. @throws NotFound */
  get(workflowId: string, recordId: string, options: CallOptions = {}): Promise<QuarantinedRecordBeside> {
    const path = `${pathOf(workflowId)}/${encodeURIComponent(recordId)}`;
    return this.#transport.json({ ...options, path });
  }

  /**
   * Publishes records as they are, without checking expectations. Without `timeoutMs` there is no time limit.
   *
   * @returns `conflicts` names given ids whose records are not in the quarantine any more; nothing was changed for them
   * @throws NotFound; Conflict if none of the records is left, or if a job of the workflow runs too long; FlowhookError 422
   *   for a quota
   */
  accept(
    workflowId: string,
    selection: QuarantineSelection,
    options: CallOptions = {},
  ): Promise<QuarantineAccepted> {
    const path = `${pathOf(workflowId)}/accept`;
    return this.#transport.json({ timeoutMs: 0, ...options, method: 'POST', path, json: selection });
  }

  /** Deletes records from the quarantine. Published records are not affected. @throws NotFound */
  drop(
    workflowId: string,
    selection: QuarantineSelection,
    options: CallOptions = {},
  ): Promise<QuarantineDropped> {
    const path = `${pathOf(workflowId)}/drop`;
    return this.#transport.json({ timeoutMs: 0, ...options, method: 'POST', path, json: selection });
  }
}

function pathOf(workflowId: string): string {
  return `/v1/workflows/${encodeURIComponent(workflowId)}/quarantine`;
}
