/** Events as callers see them: any of them, and each type. */
import type { EventType } from '../model/event.ts';
import { EVENT_CATALOG, type EventKind } from '../model/event-catalog.ts';
import { named, raw } from '../std/shape.ts';

/** The schema of each type of event, by its name in `components.schemas`. */
export const eventResources = EVENT_CATALOG.map(({ type, schema, example }) =>
  named(eventSchemaName(type), raw<unknown>(schema), example),
);

const refs = EVENT_CATALOG.map(
  ({ type }) => [type, `#/components/schemas/${eventSchemaName(type)}`] as const,
);

/** Any of them. */
export const eventResource = named(
  'Event',
  raw<unknown>({
    description: 'Exactly what a webhook is sent',
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
