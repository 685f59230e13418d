/** Builds the parts of the dashboard and the guide: what requests need of them, and their background builds. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../../observe/log.ts';
import type { Store } from '../../store/store.ts';
import { Sessions } from '../../teams/sessions.ts';
import type { LastUsed } from '../../teams/usage.ts';
import { BackgroundBuild } from './background-build.ts';
import { GUIDE } from './build-targets.ts';
import { Guide } from './guide.ts';
import { Pages } from './pages.ts';
import { RefusedSignIns } from './refused-sign-ins.ts';
import type { UiServices } from './services.ts';
import { SignInLimit } from './sign-in-limit.ts';

/** Of the repository or the package: `dist/` has the same depth as `src/`. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export interface Dashboard {
  ui: UiServices;
  /** Builds the dashboard, where it is missing. */
  build: BackgroundBuild;
  stop(): Promise<void>;
}

/**
 * @param input.root the directory of `dashboard/` and `site/`, if not this program's own
 * @param input.builds whether the first request for the guide builds it
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
