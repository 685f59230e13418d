/** Edits the rule of a webhook, and shows what it would have done. */
import { SimpleGrid } from '@mantine/core';
import { useState } from 'react';
import type { WebhookDetail } from '../../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../../client.ts';
import { ActionForm, useAction } from '../../../parts/action.tsx';
import { Section } from '../../../parts/page.tsx';
import { DigestFields, ZoneField } from './digest-fields.tsx';
import { FilterFields, ShapeFields } from './rule-fields.tsx';
import { formatsOf, formOf, type RuleForm, ruleOf } from './rule-form.ts';
import { TriedEvents } from './tried-events.tsx';
import { useTriedRule } from './tried-rule.ts';

/** Keyed by the rule, so that changes by others show up. */
export function RuleTab({ webhook }: { webhook: WebhookDetail }) {
  const { id, workflowId, events } = webhook;
  const before = formOf(webhook);
  const [form, setForm] = useState(before);
  const tried = useTriedRule(form, { workflowId, events });
  const change = (fields: Partial<RuleForm>) => setForm((now) => ({ ...now, ...fields }));
  const save = useAction({
    run: () =>
      Promise.try(() => flowhook.webhooks.update(id, { name: form.name.trim() || null, ...ruleOf(form) })),
    changes: ['webhooks'],
    done: () => 'Saved. New events are sent by this rule.',
  });
  const fields = { form, onChange: change, workflowId, events, tried };
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
      <Section title="Rule">
        <ActionForm
          action={save}
          verb="Save"
          isReady={!tried.hasMistake && JSON.stringify(before) !== JSON.stringify(form)}
        >
          <FilterFields {...fields} />
          <DigestFields {...fields} />
          <ShapeFields {...fields} formats={formatsOf(webhook.url)} />
          <ZoneField {...fields} />
        </ActionForm>
      </Section>
      <Section title="The last events with this rule">
        <TriedEvents tried={tried} />
      </Section>
    </SimpleGrid>
  );
}
