/** The tabs of the page of events: the log, and the catalogue of types. */
import { PageTabs } from '../../parts/page-tabs.tsx';

const TABS = {
  log: { label: 'Log', to: '/events' },
  catalogue: { label: 'Catalogue', to: '/events/catalogue' },
} as const;

export function EventTabs({ shown }: { shown: keyof typeof TABS }) {
  return <PageTabs label="Events" tabs={TABS} shown={shown} />;
}
