/**
 * Compares the workflow files of this node with the applied definitions. If several nodes share a database, only
 * `flowhook apply` writes definitions, because nodes with different files would otherwise overwrite each other's
 * definitions. Commands and modules run from the local files, so a node does not run jobs of a workflow whose local
 * file differs from the applied file.
 */
import { existsSync } from 'node:fs';
import type { Workflow } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import { Chore } from '../std/chore.ts';
import type { Store } from '../store/store.ts';
import { needsFiles, storedWorkflows } from './apply.ts';
import { findWorkflowFiles, isBroken } from './files.ts';

/** Files are compared at this interval, so a node notices a changed file within this time. */
const COMPARE_EVERY_MS = 5_000;

/** Workflows are named `team/id`. */
export interface Comparison {
  /** The number of local files that equal the applied files. */
  same: number;
  /** Workflows whose local file differs from the applied file or cannot be used. */
  different: string[];
  /** Files that were never applied. */
  unapplied: string[];
  /** Applied workflows without a local file. */
  missing: string[];
  /** Workflows that must not run on this node, because their local files differ or are missing. */
  foreign: { teamId: string; workflowId: string }[];
  /** The hashes of the local files of applied workflows, by `teamId/id`. */
  local: ReadonlyMap<string, string>;
}

/** @param directory may be missing */
async function compareWithApplied(store: Store, directory: string): Promise<Comparison> {
  const stored = await storedWorkflows(store);
  const { files, broken } = existsSync(directory)
    ? await findWorkflowFiles(directory)
    : { files: [], broken: [] };
  const hashes = new Map(files.map(({ team, id, hash }) => [`${team}/${id}`, hash]));
  const local = new Map<string, string>();
  const found: Comparison = {
    same: 0,
    different: [],
    unapplied: [...hashes.keys()].filter((name) => !stored.has(name)),
    missing: [],
    foreign: [],
    local,
  };
  for (const [name, { team, teamId, id, hash, fromFiles }] of stored) {
    const here = hashes.get(name);
    if (here !== undefined) local.set(`${teamId}/${id}`, here);
    if (here === hash) {
      found.same += 1;
      continue;
    }
    (here !== undefined || isBroken(broken, { team, id }) ? found.different : found.missing).push(name);
    if (fromFiles) found.foreign.push({ teamId, workflowId: id });
  }
  return found;
}

/** Compares regularly; `tick` compares once. */
export class LocalFiles {
  readonly #store: Store;
  readonly #directory: string;
  readonly #log: Logger;
  readonly #chore: Chore;
  #last: Comparison | undefined;
  #comparing: Promise<void> | undefined;

  constructor(input: { store: Store; directory: string; log: Logger; random: () => number }) {
    this.#store = input.store;
    this.#directory = input.directory;
    this.#log = input.log;
    this.#chore = new Chore({
      everyMs: COMPARE_EVERY_MS,
      random: input.random,
      work: () => this.#compare(),
      failed: (err) => input.log.error({ err }, 'workflows.not_compared'),
    });
  }

  /** Returns the workflows whose jobs only other nodes may run. */
  get foreign(): Comparison['foreign'] {
    return this.#last?.foreign ?? [];
  }

  /**
   * Whether the local file of a workflow equals the applied file. If the last comparison found a difference, the files
   * are compared again, because they may have been updated since then. Concurrent calls share one comparison.
   */
  async has({ teamId, id, definitionHash, definition }: Workflow): Promise<boolean> {
    const isSame = () => this.#last?.local.get(`${teamId}/${id}`) === definitionHash;
    if (!needsFiles(definition.source.type) || isSame()) return true;
    this.#comparing ??= this.#compare().finally(() => {
      this.#comparing = undefined;
    });
    await this.#comparing;
    return isSame();
  }

  /** The result of the last comparison; undefined before the first comparison. */
  get comparison(): Comparison | undefined {
    return this.#last;
  }

  start(): void {
    this.#chore.start();
  }

  stop(): Promise<void> {
    return this.#chore.stop();
  }

  tick(): Promise<void> {
    return this.#chore.tick();
  }

  async #compare(): Promise<void> {
    const before = this.#last;
    const found = await compareWithApplied(this.#store, this.#directory);
    this.#last = found;
    const { same, different, unapplied, missing } = found;
    if (before !== undefined && namesOf(found) === namesOf(before)) return;
    if (different.length + unapplied.length + missing.length > 0) {
      this.#log.warn(
        {
          different,
          unapplied,
          missing,
          jobsLeftToOthers: found.foreign.map(({ workflowId }) => workflowId),
        },
        'workflows.differ: the files of this node differ from the applied ones; `flowhook apply` applies the files',
      );
    } else if (before !== undefined) {
      this.#log.info({ workflows: same }, 'workflows.same');
    }
  }
}

function namesOf({ different, unapplied, missing }: Comparison): string {
  return JSON.stringify([different, unapplied, missing]);
}
