/** Opens a database of its own. */
import { DatabaseSync } from 'node:sqlite';

export const database = new DatabaseSync(':memory:');
