/** The tabs of the page of keys: the keys, and the audit. */
import { PageTabs } from '../../parts/page-tabs.tsx';

const TABS = {
  keys: { label: 'Keys', to: '/keys' },
  audit: { label: 'Audit', to: '/keys/audit' },
} as const;

export function KeyTabs({ shown }: { shown: keyof typeof TABS }) {
  return <PageTabs label="API keys" tabs={TABS} shown={shown} />;
}
