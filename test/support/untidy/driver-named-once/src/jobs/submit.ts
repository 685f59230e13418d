/** Goes around the interface. */
import { enqueue } from '../store/sqlite/jobs.ts';

export const submit = enqueue;
