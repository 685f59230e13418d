/** An operation of the store consists of a function and the way in which a driver runs the function. */
import type { Tx, View } from './transaction.ts';

/**
 * - `read`: runs outside of a transaction, on any connection for reading.
 * - `write`: runs in its own transaction on PostgreSQL, and as part of a batch on SQLite.
 * - `batched`: on PostgreSQL, shares a transaction with other waiting calls of the same team.
 * - `lease`: a write that never waits for other writes; on PostgreSQL it has its own connections.
 */
export type Kind = 'read' | 'write' | 'batched' | 'lease';

export interface Operation<Context, Input, Result> {
  kind: Kind;
  run(context: Context, input: Input): Promise<Result>;
  /**
   * For reads and writes: whether PostgreSQL prepares the statements, because they are frequent. Prepared statements
   * get plans that read rows in the order of an index. The statements of short batched operations are always prepared.
   */
  prepares?: boolean;
  /** For writes: how long PostgreSQL waits for a lock, in milliseconds, if not as long as usual. */
  lockMs?: number;
  /**
   * For batched operations: returns the rows that a call locks first, or undefined if the call needs its own
   * transaction. By default, these are the rows that `workflowId` or `held` of the input names.
   */
  begins?(input: Input): Begins | undefined;
  /**
   * For batched operations: set if a call needs many statements, or counts rows that other calls of the same operation
   * change.
   */
  isLong?: boolean;
}

/**
 * The rows that a call locks before anything else: a workflow, or a job and its workflow. Apart from these rows and
 * what belongs to the workflow, a call may lock only rows that no other call of the batch locks.
 */
export interface Begins {
  workflowId?: string | undefined;
  jobId?: string | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: contexts and inputs differ
type AnyOperation = Operation<any, any, any>;

export type Table = Readonly<Record<string, Readonly<Record<string, AnyOperation>>>>;

const operation =
  <Context>(kind: Kind) =>
  <Input, Result>(
    run: (context: Context, input: Input) => Promise<Result>,
    more: Omit<Operation<Context, Input, Result>, 'kind' | 'run'> = {},
  ): Operation<Context, Input, Result> => ({ kind, run, ...more });

export const read = operation<View>('read');
export const write = operation<Tx>('write');
export const batched = operation<Tx>('batched');
export const lease = operation<Tx>('lease');

type OperationOf<Context, Run> = Run extends (context: never, input: infer Input) => Promise<infer Result>
  ? Operation<Context, Input, Result>
  : never;

/** The names of those functions of a module that take this context. */
type NamesIn<Module, Context> = {
  [Name in keyof Module]: Module[Name] extends (context: Context, input: never) => Promise<unknown>
    ? Name
    : never;
}[keyof Module];

/** Creates operations of one kind, named after their functions: `reads(keys, 'get', 'list')`. */
const ofKind =
  <Context>(kind: Kind, more: Pick<Operation<Context, unknown, unknown>, 'prepares'> = {}) =>
  <Module, Name extends NamesIn<Module, Context>>(module: Module, ...names: Name[]) =>
    Object.fromEntries<unknown>(names.map((name) => [name, { kind, run: module[name], ...more }])) as {
      // This type lets editors find each function and its docstring by name.
      [Key in keyof Pick<Module, Name>]: OperationOf<Context, Module[Key]>;
    };

export const reads = ofKind<View>('read');
/** Frequent reads, whose statements PostgreSQL prepares. */
export const lookups = ofKind<View>('read', { prepares: true });
export const writes = ofKind<Tx>('write');
export const batches = ofKind<Tx>('batched');
export const leases = ofKind<Tx>('lease');

type Called<Of> =
  // biome-ignore lint/suspicious/noExplicitAny: any context
  Of extends Operation<any, infer Input, infer Result>
    ? unknown extends Input
      ? () => Promise<Result>
      : (input: Input) => Promise<Result>
    : never;

/** The operations of a table, as functions that take only the input. */
export type CallsOf<Of extends Table> = {
  readonly [Group in keyof Of]: { readonly [Name in keyof Of[Group]]: Called<Of[Group][Name]> };
};

/**
 * Creates the functions of the store that callers use.
 *
 * @param call how a driver runs an operation; `name` is `group.operation`
 */
export function callsOf<Of extends Table>(
  table: Of,
  call: (name: string, operation: AnyOperation) => (input: unknown) => Promise<unknown>,
): CallsOf<Of> {
  const groups = Object.entries(table).map(([group, operations]) => {
    const calls = Object.entries(operations).map(([name, operation]) => [
      name,
      call(`${group}.${name}`, operation),
    ]);
    return [group, Object.fromEntries(calls)];
  });
  return Object.fromEntries(groups) as CallsOf<Of>;
}

/** Returns the team that the input of an operation names, if any. */
export function teamOf(input: unknown): string | undefined {
  const { teamId, held } = (input ?? {}) as { teamId?: unknown; held?: { teamId?: unknown } };
  const team = teamId ?? held?.teamId;
  return typeof team === 'string' ? team : undefined;
}
