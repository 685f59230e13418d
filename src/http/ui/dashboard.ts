/** The dashboard of a service: what the wire needs of it, and what runs for it. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../../observe/log.ts';
import type { Store } from '../../store/store.ts';
import type { LastUsed } from '../../teams/last-used.ts';
import { Sessions } from '../../teams/sessions.ts';
import { BackgroundBuild } from './background-build.ts';
import { Pages } from './pages.ts';
import { RefusedSignIns } from './refused-sign-ins.ts';
import type { UiServices } from './services.ts';
import { SignInLimit } from './sign-in-limit.ts';

/** Of the repository or the package: the same place from `src/` and from what is built of it. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export interface Dashboard {
  ui: UiServices;
  /** Builds what is missing, beside everything else. */
  build: BackgroundBuild;
  stop(): Promise<void>;
}

/** @param input.root where `dashboard/` lies, if not beside this program */
export function openDashboard(input: {
  store: Store;
  log: Logger;
  environment: ReadonlyMap<string, string>;
  publicUrl(): string;
  root?: string | undefined;
  lastUsed?: LastUsed;
}): Dashboard {
  const { store, log, environment, publicUrl, root = ROOT, lastUsed } = input;
  const build = new BackgroundBuild({ root, log, environment });
  const sessions = new Sessions(store, lastUsed);
  const pages = new Pages({ directory: join(root, 'dashboard', 'dist'), state: () => build.state });
  return {
    ui: { sessions, limit: new SignInLimit(), refused: new RefusedSignIns(store, log), pages, publicUrl },
    build,
    async stop() {
      sessions.close();
      await build.stop();
    },
  };
}
