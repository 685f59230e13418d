/** Deleting a team: the mark of a retired one, and the tables to delete from, in order. */
import { INSPECTOR_TABLES, TABLES, type Table } from './copy/tables.ts';

/** Prefix of the slug of a retired team, which is not valid in a slug. */
export const RETIRED = 'deleted:';

/**
 * Frees the team's slug, and marks the team so that an interrupted deletion can be resumed. The mark is not a column of
 * its own, so that nodes of the previous version understand it: they see a team without keys and workflows.
 */
export function retiredSlug({ id, slug }: { id: string; slug: string }): string {
  return `${RETIRED}${slug}:${id}`;
}

/** The slug that a retired team had. */
export function slugBefore(retired: string): string {
  return retired.slice(RETIRED.length, retired.lastIndexOf(':'));
}

const OF_NO_TEAM = ['instance', 'team', 'job'];

/**
 * Every table with rows of teams, including any added to `TABLES` later. Jobs go first, because a run without its
 * job can write nothing more; then referring tables before those they refer to.
 */
export const TEAM_TABLES: readonly Table[] = [
  ...TABLES.filter(({ name }) => name === 'job'),
  ...[...INSPECTOR_TABLES].reverse(),
  ...TABLES.filter(({ name }) => !OF_NO_TEAM.includes(name)).reverse(),
];
