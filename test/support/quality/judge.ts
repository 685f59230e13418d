/** Judges the records of runs as a service does, without one. */

import { COMPARED_PROFILES, judgeDrift } from '../../../src/model/quality/drift.ts';
import type { JobFinding } from '../../../src/model/quality/expect.ts';
import type { Profile } from '../../../src/model/quality/profile.ts';
import type { Mode } from '../../../src/model/workflow.ts';
import { RunProfile } from '../../../src/records/quality/run-profile.ts';

type Records = readonly Record<string, unknown>[];

/** The runs of one workflow. */
export class Judge {
  readonly #mode: Mode;
  #earlier: Profile[] = [];

  constructor(mode: Mode = 'replace') {
    this.#mode = mode;
  }

  /** The drift of another run, compared with those that were added. */
  judge(records: Records): JobFinding[] {
    return this.#drifts(profileOf(records));
  }

  /** The drift of the next run. */
  add(records: Records): JobFinding[] {
    const profile = profileOf(records);
    const drifts = this.#drifts(profile);
    this.#earlier = [profile, ...this.#earlier].slice(0, COMPARED_PROFILES);
    return drifts;
  }

  #drifts(profile: Profile): JobFinding[] {
    return judgeDrift({ mode: this.#mode, profile, earlier: this.#earlier });
  }
}

function profileOf(records: Records): Profile {
  const profile = new RunProfile();
  for (const record of records) profile.add(record);
  return profile.result({ duplicates: records.length - new Set(records.map(({ id }) => id)).size });
}
