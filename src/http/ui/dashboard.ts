/** The dashboard of a service and its guide: what the wire needs of them, and what runs for them. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../../observe/log.ts';
import type { Store } from '../../store/store.ts';
import type { LastUsed } from '../../teams/last-used.ts';
import { Sessions } from '../../teams/sessions.ts';
import { BackgroundBuild } from './background-build.ts';
import { GUIDE } from './buildables.ts';
import { Guide } from './guide.ts';
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

/**
 * @param input.root where `dashboard/` and `site/` lie, if not beside this program
 * @param input.builds whether the guide is built when somebody asks for it
 */
export function openDashboard(input: {
  store: Store;
  log: Logger;
  environment: ReadonlyMap<string, string>;
  publicUrl(): string;
  root?: string | undefined;
  builds: boolean;
  lastUsed?: LastUsed;
}): Dashboard {
  const { store, log, environment, publicUrl, root = ROOT, builds, lastUsed } = input;
  const build = new BackgroundBuild({ root, log, environment });
  const buildOfGuide = new BackgroundBuild({ root, log, environment, what: GUIDE });
  const guide = new Guide({ root, build: buildOfGuide, builds });
  const sessions = new Sessions(store, lastUsed);
  const pages = new Pages({ directory: join(root, 'dashboard', 'dist'), state: () => build.state });
  return {
    ui: {
      sessions,
      limit: new SignInLimit(),
      refused: new RefusedSignIns(store, log),
      pages,
      guide,
      publicUrl,
    },
    build,
    async stop() {
      sessions.close();
      await Promise.all([build.stop(), buildOfGuide.stop()]);
    },
  };
}
