/** What the dashboard and the guide need from the rest of the service. */
import { Problem } from '../../model/error.ts';
import type { Sessions } from '../../teams/sessions.ts';
import type { Call } from '../route.ts';
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
  /** The URL of this service from outside. */
  publicUrl(): string;
}

/** @throws Problem `route_not_found` where there is no dashboard */
export function uiOf({ services: { ui } }: Pick<Call, 'services'>): UiServices {
  if (ui === undefined) throw new Problem('route_not_found');
  return ui;
}
