/** What the dashboard and the guide need from the rest of the service. */
import type { Sessions } from '../../teams/sessions.ts';
import type { Guide } from './guide.ts';
import type { Pages } from './pages.ts';
import type { RefusedSignIns } from './refused-sign-ins.ts';
import type { SignInLimit } from './sign-in-limit.ts';

export interface UiServices {
  sessions: Sessions;
  limit: SignInLimit;
  refused: RefusedSignIns;
  pages: Pages;
  guide: Guide;
  /** Where this service is reached from outside. */
  publicUrl(): string;
}
