/** The second step: looking at the records of a run. */
import { curl } from '../../parts/curl.ts';
import { ButtonLink } from '../../parts/link.tsx';
import { many } from '../../parts/quantity.ts';
import { Step } from './step.tsx';
import type { Steps } from './steps.ts';

export function DataStep({ steps: { toRead, toRun, hasData } }: { steps: Steps }) {
  const workflowId = toRead?.id ?? toRun?.id ?? 'people';
  return (
    <Step
      number={2}
      title="Look at its data"
      isDone={hasData}
      action={
        toRead !== undefined && (
          <ButtonLink to="/workflows/$workflowId/data" params={{ workflowId: toRead.id }}>
            {many(toRead.records, 'record')} of {toRead.name}
          </ButtonLink>
        )
      }
      commands={{
        curl: curl({ path: `/v1/workflows/${encodeURIComponent(workflowId)}/data` }),
        cli: `npx flowhook data get ${workflowId}`,
      }}
    >
      {toRead === undefined
        ? 'Records can be read here as soon as a run has published some: as JSON, line by line, or as CSV.'
        : 'The newest version, whole: as JSON, line by line, or as CSV.'}
    </Step>
  );
}
