/** A page that goes past the API. */
import { stateOf } from '../../src/model/job.ts';

export const Page = () => stateOf();
