/** The operations of this driver: those that both have, and those whose way is PostgreSQL's own. */
import { lease, read, write } from '../operation.ts';
import { OPERATIONS } from '../operations/table.ts';
import { renewFree, renewLocked } from './beat.ts';
import { take, turns } from './claim.ts';
import { survey } from './claim-bounds.ts';
import * as leases from './lane-leases.ts';
import { isLarge, lane, lanes, load } from './lanes.ts';
import { database } from './status.ts';

export const POSTGRES_OPERATIONS = {
  ...OPERATIONS,
  claiming: { turns: read(turns), take: write(take), survey: read(survey) },
  beating: { free: lease(renewFree), locked: write(renewLocked) },
  deliveries: { ...OPERATIONS.deliveries, load: read(load, { prepares: true }) },
  lanes: {
    all: read(lanes),
    one: read(lane, { prepares: true }),
    isLarge: read(isLarge),
    take: write(leases.take),
    keep: lease(leases.keep),
    release: write(leases.release),
  },
  status: { ...OPERATIONS.status, database: read(database) },
};
