/** The key facts of a run. */
import type { Job } from 'flowhook-client';
import { Duration } from '../../parts/duration.tsx';
import { type Fact, Facts } from '../../parts/facts.tsx';
import { bytes, count, many } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';
import { Counts, ORIGINS } from './run-columns.tsx';

export function RunFacts({ job }: { job: Job }) {
  const { queuedAt, startedAt, finishedAt, attempt, origin, version, records, progress, nextAttemptAt } = job;
  const facts: Fact[] = [
    ['Queued', <Time key="queued" at={queuedAt} />],
    ['Waited', <Duration key="waited" from={queuedAt} to={startedAt ?? finishedAt} />],
    ['Took', <Duration key="took" from={startedAt} to={finishedAt} />],
    [
      finishedAt === null ? 'Started' : 'Ended',
      <Time key="ended" at={finishedAt ?? startedAt} none="not yet" />,
    ],
    ['Attempt', nextAttemptAt === null ? count(attempt) : <Next key="next" job={job} />],
    ['Started by', ORIGINS[origin]],
  ];
  if (records !== null) facts.push(['Records', <Counts key="records" records={records} />]);
  else if (progress !== null) {
    const pages = progress.pages === null ? '' : `, ${many(progress.pages, 'page')}`;
    facts.push(['So far', `${many(progress.records, 'record')}, ${bytes(progress.bytes)}${pages}`]);
  }
  if (version !== null) facts.push(['Version', count(version)]);
  return <Facts facts={facts} />;
}

function Next({ job: { attempt, nextAttemptAt } }: { job: Job }) {
  return (
    <>
      {attempt}, again <Time at={nextAttemptAt} />
    </>
  );
}
