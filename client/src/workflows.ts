/** Workflows: their definitions, records, versions and jobs. */
import { brokenOff, linesOf } from './lines.ts';
import { type ListOptions, nextCursor, type Page, type Pages, pagesOf } from './pages.ts';
import { type Pushed, pushBody } from './push-body.ts';
import type {
  Change as AnyChange,
  DataRecord,
  ErasureReport,
  Profile,
  PushResult,
  RecordChange,
  WorkflowDefinition as StoredDefinition,
  Version,
  Workflow,
} from './resources.ts';
import { type CallOptions, type KeyedOptions, randomKey, type Transport } from './transport.ts';

/** The content of a workflow file. */
export type Definition = { source: { type: string } & Record<string, unknown> } & Record<string, unknown>;

/** How one record changed. */
export type Change<R = DataRecord> = Omit<AnyChange, 'record'> & { record?: R };

/** A definition with the `etag` that `put` takes as `ifMatch`. */
export type WorkflowDefinition = StoredDefinition & { etag: string | null };

/** Which records to read, and in which version. */
export interface DataOptions extends CallOptions {
  /** Default: the newest version. */
  version?: number | undefined;
  /** Only these fields, and `id`. */
  fields?: readonly string[] | undefined;
  /** Only records added or changed after this version. */
  since?: number | undefined;
  /** Only records that contain this text, at most 1,000. */
  q?: string | undefined;
}

/** Which changes to read. */
export interface ChangesOptions {
  /** A version (0: all records are new), or the newest version that was published by a time (`Date` or ISO 8601). */
  since: number | string | Date;
  /** Default: the newest version. */
  until?: number | string | Date | undefined;
  type?: readonly AnyChange['type'][] | undefined;
  /** Only changes of this field, or of these, without other fields. */
  field?: string | readonly string[] | undefined;
  /** Only changes that match this expression. */
  filter?: string | undefined;
}

interface IfMatch {
  /** The `etag` of what is replaced: the call fails if it has changed since. */
  ifMatch?: string | undefined;
}

/** A stream of records, with their version and number. */
export interface Data<R> {
  version: number;
  /** The number of records in the version; null with `since` or `q`. */
  total: number | null;
  /** Pass it as `ifNoneMatch` in a later call. */
  etag: string | null;
  records: AsyncIterable<R>;
}

export class Workflows {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * All workflows of the team.
   *
   * @param options.recentJobs number of recent jobs to include with each workflow, at most 20
   * @param options.q only workflows whose ID or name contains this text
   */
  list({
    recentJobs,
    q,
    ...options
  }: ListOptions & { recentJobs?: number | undefined; q?: string | undefined } = {}): Pages<Workflow> {
    return pagesOf(this.#transport, 'workflows', {
      ...options,
      path: '/v1/workflows',
      query: { recentJobs, q },
    });
  }

  /** @throws NotFound */
  get(workflowId: string, options: CallOptions = {}): Promise<Workflow> {
    return this.#transport.json({ ...options, path: pathOf(workflowId) });
  }

  /**
   * Streams the records of the newest version, no faster than they are consumed and without holding them all in
   * memory. Numbers that a double cannot represent exactly are rounded, as by JSON.parse.
   *
   * @throws NotFound; Unavailable `broken_off` if the response ends before the last record
   */
  async *readData<R = DataRecord>(workflowId: string, options: DataOptions = {}): AsyncGenerator<R> {
    const data = await this.openData<R>(workflowId, options);
    if (data !== null) yield* data.records;
  }

  /** All records as one array. */
  async readAll<R = DataRecord>(workflowId: string, options: DataOptions = {}): Promise<R[]> {
    const records: R[] = [];
    for await (const record of this.readData<R>(workflowId, options)) records.push(record);
    return records;
  }

  /**
   * Like `readData`, with the version, the total and the ETag before the first record.
   *
   * @param options.ifNoneMatch the `etag` of an earlier call
   * @returns null if nothing has changed since
   */
  async openData<R = DataRecord>(
    workflowId: string,
    options: DataOptions & { ifNoneMatch?: string | undefined } = {},
  ): Promise<Data<R> | null> {
    const { version, fields, since, q, ifNoneMatch, ...rest } = options;
    const response = await this.#transport.stream({
      ...rest,
      path: `${pathOf(workflowId)}/data`,
      query: { version, fields, since, q },
      headers: { accept: 'application/x-ndjson', 'if-none-match': ifNoneMatch },
    });
    const { headers } = response;
    if (response.status === 304) return null;
    const total = headers.get('x-total-count');
    return {
      version: Number(headers.get('x-data-version')),
      total: total === null ? null : Number(total),
      etag: headers.get('etag'),
      records: this.#rows<R>(response, rest, total === null ? null : Number(total)),
    };
  }

  /**
   * One page of records. The cursor keeps the version of the first page.
   *
   * @throws NotFound, with status 410 if the version of the cursor is no longer stored
   */
  async dataPage<R = DataRecord>(
    workflowId: string,
    options: DataOptions & ListOptions = {},
  ): Promise<Page<R> & { version: number; total: number | null }> {
    const { version, fields, since, q, limit, cursor, ...rest } = options;
    const { value, headers } = await this.#transport.withHeaders<R[]>({
      ...rest,
      path: `${pathOf(workflowId)}/data`,
      query: { version, fields, since, q, limit, cursor },
    });
    const total = headers.get('x-total-count');
    return {
      items: value,
      next: nextCursor(headers.get('link')),
      version: Number(headers.get('x-data-version')),
      total: total === null ? null : Number(total),
    };
  }

  /**
   * The data as a response in the given format.
   *
   * @throws NotFound
   */
  dataAs(
    format: 'json' | 'ndjson' | 'csv',
    workflowId: string,
    options: DataOptions = {},
  ): Promise<Response> {
    const { version, fields, since, q, ...rest } = options;
    const query = { format, version, fields, since, q };
    return this.#transport.stream({ ...rest, path: `${pathOf(workflowId)}/data`, query });
  }

  /**
   * The net changes after a version or a time: first the records that were added or changed, then those that were
   * removed.
   *
   * @throws NotFound, with status 410 if that version is no longer stored: read all data again
   */
  async *changes<R = DataRecord>(
    workflowId: string,
    options: CallOptions & ChangesOptions,
  ): AsyncGenerator<Change<R>> {
    yield* (await this.openChanges<R>(workflowId, options)).changes;
  }

  /** Like `changes`, with the two versions that are compared before the first change. @throws as `changes` */
  async openChanges<R = DataRecord>(
    workflowId: string,
    options: CallOptions & ChangesOptions,
  ): Promise<{ since: number; until: number; changes: AsyncIterable<Change<R>> }> {
    const response = await this.changesAs('ndjson', workflowId, options);
    return {
      since: Number(response.headers.get('x-since-version')),
      until: Number(response.headers.get('x-data-version')),
      changes: this.#rows<Change<R>>(response, options, null),
    };
  }

  /** The changes as a response in the given format. CSV has a line for each field. @throws as `changes` */
  changesAs(
    format: 'json' | 'ndjson' | 'csv',
    workflowId: string,
    { since, until, type, field, filter, ...options }: CallOptions & ChangesOptions,
  ): Promise<Response> {
    const query = { since, until, type, field: field && { each: [field].flat() }, filter, format };
    return this.#transport.stream({ ...options, path: `${pathOf(workflowId)}/changes`, query });
  }

  /** What the readable versions did with a record, newest first. @throws NotFound */
  recordHistory(workflowId: string, recordId: string, options: ListOptions = {}): Pages<RecordChange> {
    const path = `${pathOf(workflowId)}/records/${encodeURIComponent(recordId)}/history`;
    return pagesOf(this.#transport, 'history', { ...options, path });
  }

  /**
   * What the records of the newest versions looked like, newest first, and the expectations that this suggests.
   *
   * @param options.versions maximum number of profiles (default: 20, at most 100)
   * @throws NotFound
   */
  profile(
    workflowId: string,
    { versions, ...options }: CallOptions & { versions?: number | undefined } = {},
  ): Promise<{ profiles: Profile[]; expect: Record<string, unknown> }> {
    return this.#transport.json({ ...options, path: `${pathOf(workflowId)}/profile`, query: { versions } });
  }

  /** The versions that can be read, newest first. */
  versions(workflowId: string, options: ListOptions = {}): Pages<Version> {
    return pagesOf(this.#transport, 'versions', { ...options, path: `${pathOf(workflowId)}/versions` });
  }

  /**
   * Queues a job.
   *
   * @throws NotFound; Conflict with the `jobId` of the unfinished job
   */
  async queue(
    workflowId: string,
    { idempotencyKey = randomKey(), ...options }: KeyedOptions = {},
  ): Promise<{ message: string; jobId: string }> {
    const { value, headers } = await this.#transport.withHeaders<{ message: string }>({
      ...options,
      method: 'POST',
      path: `${pathOf(workflowId)}/queue`,
      idempotencyKey,
    });
    return { message: value.message, jobId: headers.get('x-job-id') ?? '' };
  }

  /**
   * Publishes records, all or none; resolves once they can be read. Arrays can be retried; other iterables are streamed and
   * cannot. Without `timeoutMs` there is no time limit.
   *
   * @param options.allowDrop allows a push that removes nearly all existing records
   * @returns `warning` is set if the push removed more than half of many records
   * @throws NotFound; Conflict if another push takes too long; FlowhookError 422 for an invalid record or a failed guard
   */
  async push(
    workflowId: string,
    records: Pushed,
    options: KeyedOptions & { mode?: Workflow['mode']; allowDrop?: boolean } = {},
  ): Promise<PushResult> {
    const { mode, allowDrop, idempotencyKey = randomKey(), ...rest } = options;
    const { contentType, contentEncoding, body } = pushBody(records);
    return this.#transport.json({
      timeoutMs: 0,
      ...rest,
      method: 'POST',
      path: `${pathOf(workflowId)}/push`,
      query: { mode, allowDrop },
      headers: { 'content-type': contentType, 'content-encoding': contentEncoding },
      body,
      idempotencyKey,
    });
  }

  /** The definition of a workflow; pass its `etag` as `ifMatch` to `put`. @throws NotFound */
  async definition(workflowId: string, options: CallOptions = {}): Promise<WorkflowDefinition> {
    const path = `${pathOf(workflowId)}/definition`;
    const { value, headers } = await this.#transport.withHeaders<StoredDefinition>({ ...options, path });
    return { ...value, etag: headers.get('etag') };
  }

  /**
   * Creates a workflow, or changes one that was created over the API.
   *
   * @throws Conflict for a workflow that a file defines, and if `ifMatch` does not match; FlowhookError 400 with the
   *   mistakes in the definition
   */
  async put(
    workflowId: string,
    definition: Definition,
    options: CallOptions & IfMatch = {},
  ): Promise<Workflow> {
    return (await this.#put<{ workflow: Workflow }>(workflowId, definition, options)).workflow;
  }

  /** Checks a definition without saving it; resolves with a sentence if it is valid. @throws as `put` */
  async check(workflowId: string, definition: Definition, options: CallOptions = {}): Promise<string> {
    return (await this.#put<{ message: string }>(workflowId, definition, options, { dryRun: true })).message;
  }

  /** Archives a workflow that was created over the API; `put` restores it with its records. @throws NotFound, Conflict */
  delete(workflowId: string, options: CallOptions = {}): Promise<{ message: string }> {
    return this.#transport.remove({ ...options, path: pathOf(workflowId) });
  }

  /**
   * The state that the last published run of the source has stored for the next run; null if there is none. Pass its
   * `etag` as `ifMatch` to `setState` or `resetState`.
   *
   * @param options.parse parses the response instead of `JSON.parse`, which rounds numbers beyond 2^53
   * @throws NotFound
   */
  async state<S = unknown>(
    workflowId: string,
    { parse, ...options }: CallOptions & { parse?: ((text: string) => unknown) | undefined } = {},
  ): Promise<{ state: S | null; etag: string | null }> {
    const path = `${pathOf(workflowId)}/state`;
    const { value, headers } = await this.#transport.withHeaders<{ state: S | null }>(
      { ...options, path },
      parse,
    );
    return { ...value, etag: headers.get('etag') };
  }

  /**
   * Replaces the state that the next run starts from. To read older data again, set an earlier cursor and queue a job.
   *
   * @throws NotFound; Conflict while a run is in progress, and if `ifMatch` does not match; FlowhookError 400 if the
   *   source cannot have this state
   */
  setState(
    workflowId: string,
    state: unknown,
    options: CallOptions & IfMatch = {},
  ): Promise<{ message: string }> {
    return this.#guarded('PUT', `${pathOf(workflowId)}/state`, options, { json: { state } });
  }

  /** Removes the state, so that the next run starts like the first. @throws NotFound; Conflict as `setState` */
  resetState(workflowId: string, options: CallOptions & IfMatch = {}): Promise<{ message: string }> {
    return this.#guarded('DELETE', `${pathOf(workflowId)}/state`, options);
  }

  /** Stops the workflow from accepting and starting jobs until it is resumed. @throws NotFound */
  async pause(workflowId: string, options: CallOptions = {}): Promise<Workflow> {
    return this.#change(workflowId, 'pause', options);
  }

  /** @throws NotFound */
  async resume(workflowId: string, options: CallOptions = {}): Promise<Workflow> {
    return this.#change(workflowId, 'resume', options);
  }

  /**
   * Erases a person from everything that the workflow has published. The call is safe to repeat, and may take minutes
   * on a large database.
   *
   * @throws NotFound
   */
  erase(
    workflowId: string,
    {
      signal,
      timeoutMs = 0,
      ...person
    }: CallOptions & ({ email: string } | { id: string }) & { dryRun?: boolean; suppress?: boolean },
  ): Promise<ErasureReport> {
    const path = `${pathOf(workflowId)}/erase`;
    return this.#transport.json({ method: 'POST', path, json: person, signal, timeoutMs });
  }

  #put<T>(
    workflowId: string,
    json: Definition,
    options: CallOptions & IfMatch,
    query: { dryRun?: boolean } = {},
  ): Promise<T> {
    return this.#guarded('PUT', pathOf(workflowId), options, { query, json });
  }

  #guarded<T>(
    method: 'PUT' | 'DELETE',
    path: string,
    { ifMatch, ...options }: CallOptions & IfMatch,
    content: { query?: { dryRun?: boolean }; json?: unknown } = {},
  ): Promise<T> {
    return this.#transport.json({ ...options, method, path, headers: { 'if-match': ifMatch }, ...content });
  }

  async #change(workflowId: string, verb: string, options: CallOptions): Promise<Workflow> {
    const path = `${pathOf(workflowId)}/${verb}`;
    return (await this.#transport.json<{ workflow: Workflow }>({ ...options, method: 'POST', path }))
      .workflow;
  }

  async *#rows<R>(response: Response, options: CallOptions, total: number | null): AsyncGenerator<R> {
    const patienceMs = this.#transport.patienceMs(options);
    let count = 0;
    for await (const line of linesOf(response, { patienceMs, signal: options.signal })) {
      count += 1;
      yield JSON.parse(line);
    }
    if (total !== null && count !== total) throw brokenOff();
  }
}

function pathOf(workflowId: string): string {
  return `/v1/workflows/${encodeURIComponent(workflowId)}`;
}
