/**
 * The files of this node beside what was applied. Where several nodes share a database only `flowhook apply` writes
 * definitions: else two nodes with different files would undo each other's. A node whose file of a workflow is not what
 * was applied leaves its jobs to others, because commands and modules are run from those files.
 */
import { existsSync } from 'node:fs';
import type { Workflow } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import { Chore } from '../std/chore.ts';
import type { Store } from '../store/store.ts';
import { needsFiles, storedWorkflows } from './apply.ts';
import { findWorkflowFiles } from './files.ts';

/** For so long a node may go by files that are no longer what was applied. */
const LOOK_EVERY_MS = 5_000;

/** What comparing came to. Workflows are named `team/id`. */
export interface Comparison {
  /** How many are the same here and there. */
  same: number;
  /** Their file here is another than the one that was applied, or cannot be used. */
  different: string[];
  /** There is a file, and nobody has applied it. */
  unapplied: string[];
  /** Applied, and without a file here. */
  missing: string[];
  /** Those that cannot run here, because what would run is not what was applied. */
  foreign: { teamId: string; workflowId: string }[];
  /** What lies here of applied workflows: the hash of the file, by `teamId/id`. */
  local: ReadonlyMap<string, string>;
}

/** Compares the files of a directory, which may be missing, with what was applied. */
async function compareWithApplied(store: Store, directory: string): Promise<Comparison> {
  const stored = await storedWorkflows(store);
  const { files, broken } = existsSync(directory)
    ? await findWorkflowFiles(directory)
    : { files: [], broken: [] };
  const hashes = new Map(files.map(({ team, id, hash }) => [`${team}/${id}`, hash]));
  const isBroken = (team: string, id: string) =>
    broken.some((one) => one.team === team && (one.id === null || one.id === id));
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
    (here !== undefined || isBroken(team, id) ? found.different : found.missing).push(name);
    if (fromFiles) found.foreign.push({ teamId, workflowId: id });
  }
  return found;
}

/** Keeps track of what cannot run here; a tick looks once. */
export class LocalFiles {
  readonly #store: Store;
  readonly #directory: string;
  readonly #log: Logger;
  readonly #chore: Chore;
  #last: Comparison | undefined;
  #looking: Promise<void> | undefined;

  constructor(input: { store: Store; directory: string; log: Logger; random: () => number }) {
    this.#store = input.store;
    this.#directory = input.directory;
    this.#log = input.log;
    this.#chore = new Chore({
      everyMs: LOOK_EVERY_MS,
      random: input.random,
      work: () => this.#look(),
      failed: (err) => input.log.error({ err }, 'workflows.not_compared'),
    });
  }

  /** The workflows whose jobs are for other nodes. */
  get foreign(): Comparison['foreign'] {
    return this.#last?.foreign ?? [];
  }

  /**
   * Whether what would run here is what was applied. When it is not as it was at the last look, this looks again: the
   * file may have come since. Calls at one moment share a look.
   */
  async has({ teamId, id, definitionHash, definition }: Workflow): Promise<boolean> {
    const isSame = () => this.#last?.local.get(`${teamId}/${id}`) === definitionHash;
    if (!needsFiles(definition.source.type) || isSame()) return true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    await this.#looking;
    return isSame();
  }

  /** What the last look came to; nothing before the first. */
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

  async #look(): Promise<void> {
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
        'workflows.differ: what was applied is not what lies here; `flowhook apply` brings these files in',
      );
    } else if (before !== undefined) {
      this.#log.info({ workflows: same }, 'workflows.same');
    }
  }
}

function namesOf({ different, unapplied, missing }: Comparison): string {
  return JSON.stringify([different, unapplied, missing]);
}
