/** The groups of settings with their titles, as in the reference, the help and `flowhook.yaml`. */
import { type NamedSetting, SETTINGS, type SettingGroup } from './settings.ts';

const GROUP_TITLES: Readonly<Record<SettingGroup, string>> = {
  server: 'Server',
  database: 'Database',
  keys: 'Keys and the audit',
  jobs: 'Workflows and jobs',
  records: 'Records',
  webhooks: 'Webhooks and events',
  limits: 'Limits',
  backups: 'Backups',
  observation: 'Log',
};

/** The rows by group, both in the order of the table. */
export function settingsByGroup(): { title: string; settings: NamedSetting[] }[] {
  const groups = Object.entries(Object.groupBy(SETTINGS, ({ group }) => group));
  return groups.map(([group, settings]) => ({ title: GROUP_TITLES[group as SettingGroup], settings }));
}
