/** Events as the API returns them: one schema per type, and one for any event. */
import type { EventType } from '../model/event.ts';
import { EVENT_CATALOG, type EventKind } from '../model/event-catalog.ts';
import { named, raw } from '../std/shape.ts';

export const eventResources = EVENT_CATALOG.map(({ type, schema, example }) =>
  named(eventSchemaName(type), raw<unknown>(schema), example),
);

const refs = EVENT_CATALOG.map(
  ({ type }) => [type, `#/components/schemas/${eventSchemaName(type)}`] as const,
);

export const eventResource = named(
  'Event',
  raw<unknown>({
    description: 'Event, exactly as webhooks receive it',
    oneOf: refs.map(([, $ref]) => ({ $ref })),
    discriminator: { propertyName: 'type', mapping: Object.fromEntries(refs) },
  }),
  kindOf('workflow_finished')?.example,
);

/** `workflow_finished` → `WorkflowFinishedEvent`. */
export function eventSchemaName(type: EventType): string {
  const words = type.split('_').map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`);
  return `${words.join('')}Event`;
}

function kindOf(type: EventType): EventKind | undefined {
  return EVENT_CATALOG.find((kind) => kind.type === type);
}
