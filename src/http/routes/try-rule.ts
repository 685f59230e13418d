/** Tries the rule of a webhook on past events, without saving or sending anything. */
import { found, Problem } from '../../model/error.ts';
import { canonicalEvents, type EventType } from '../../model/event.ts';
import { RuleMistake } from '../../model/rule.ts';
import { knownEventsMistake } from '../../model/webhook.ts';
import { shownTried, tryResultResource } from '../../resources/try-result.ts';
import { ruleFieldsOf } from '../../webhooks/change-webhook.ts';
import { bodyFields } from '../input/body.ts';
import { invalid, wholeFrom, workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { eventsSchema } from './subscriptions.ts';
import { RULE } from './webhook-fields.ts';

const DEFAULT_LAST = 20;
const MAX_LAST = 50;

/** POST /v1/webhooks/try */
export const tryWebhook: Operation<KeyedCall<'examiner'>> = {
  id: 'tryWebhook',
  weight: 'whole',
  group: 'Integrations',
  summary: 'Try a rule',
  description:
    'Returns what a webhook with this rule would have been sent of the last events, and why it would not have been sent ' +
    'the others. Cooldowns and digests are simulated, beginning with the oldest of these events. Nothing is saved or sent. ' +
    'A digest follows as an event `webhook_digest`; one that is still open is shown as it is now. A mistake in ' +
    'the rule is returned as `mistake`, with its place.',
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        ...RULE,
        workflowId: {
          type: ['string', 'null'],
          minLength: 1,
          description: 'Only events of this workflow (default: `null`, all workflows of the team)',
        },
        events: { ...eventsSchema, description: 'Only these events, by name or alias (default: all)' },
        last: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_LAST,
          default: DEFAULT_LAST,
          description: `Number of events (default: ${DEFAULT_LAST})`,
        },
      },
    },
    { required: false },
  ),
  answer: jsonResponse('Result for each of the last events', tryResultResource),
  errors: {
    field_invalid: 'A field other than those of the rule is not valid',
    workflow_not_found: 'No workflow found',
    overloaded: 'Too many rules are being tried',
  },

  async handle(call) {
    const { services, caller } = call;
    const { teamId } = caller;
    const { workflowId = null, events, last = DEFAULT_LAST, ...fields } = await bodyFields(call);
    const types = typesFrom(events);
    const most = wholeFrom(last, '`last`', { least: 1, most: MAX_LAST });
    if (workflowId !== null) {
      const id = workflowIdFrom(typeof workflowId === 'string' ? workflowId : undefined);
      found(await services.store.workflows.get({ teamId, id }), 'workflow_not_found');
    }
    const selection = { teamId, workflowId: workflowId === null ? undefined : String(workflowId), types };
    try {
      const { ruleFrom } = await import('../../model/rule-fields.ts');
      const rule = ruleFrom({ ...ruleFieldsOf(fields) });
      const tried = await services.examiner.tryRule({ ...selection, rule, last: most });
      return tryResultResource.of({ tried: tried.map(shownTried), mistake: null });
    } catch (error) {
      // An editor tries rules while they are being written, so mistakes in them are an ordinary result.
      return tryResultResource.of({ tried: [], mistake: mistakeOf(error) });
    }
  },
};

/** The types that these names mean; undefined for all. @throws Problem `field_invalid` */
function typesFrom(events: unknown): EventType[] | undefined {
  if (events === undefined) return undefined;
  const mistake = knownEventsMistake(events);
  if (mistake !== undefined) invalid(mistake);
  const { known } = canonicalEvents(events as string[]);
  return known.includes('*') ? undefined : (known as EventType[]);
}

/** @throws the error, unless it is about the rule */
function mistakeOf(error: unknown) {
  if (!(error instanceof Problem && error.code === 'field_invalid')) throw error;
  const { message } = error;
  if (!(error instanceof RuleMistake)) return { field: 'filter', message, from: null, to: null };
  const { field, from, to } = error;
  return { field, message, from, to };
}
