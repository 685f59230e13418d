/** The benchmark `growth` on PostgreSQL. */
import { growth } from './growth.ts';

export default growth('PostgreSQL');
