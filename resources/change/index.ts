/** The stream of changes of an account: what its lists show, as it changes. */
import { z } from 'zod'
import { ACCOUNT_NOUNS, type AccountNoun } from '../../domain/account/quota.ts'
import { Cursor } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

/** What the account has and the stream does not send: a webhook is read again. */
const UNSENT = ['webhook'] as const
type ChangeType = Exclude<AccountNoun, (typeof UNSENT)[number]> | 'operation'
/** Types whose items the stream sends. Of everything else it only says that it has changed. */
export const CHANGE_TYPES = [
  ...ACCOUNT_NOUNS.filter((noun) => !UNSENT.some((unsent) => unsent === noun)),
  'operation',
] as readonly ChangeType[] // without those that are not sent

const RESET_REASONS = ['start', 'cursor_too_old', 'cursor_unknown', 'too_many_changes'] as const
export type ResetReason = (typeof RESET_REASONS)[number]

const Reset = z.strictObject({
  reason: z
    .enum(RESET_REASONS)
    .describe('start: no cursor was given. Otherwise why changes are missing after the cursor, or among these.'),
})

const Change = z.strictObject({
  type: z.string().describe('Type of the resource, as in audit entries.'),
  id: z.string().describe('Id of the resource.'),
  is: z
    .enum(['set', 'removed', 'changed'])
    .describe('set: item is its new state. removed: it is deleted. changed: read it again.'),
  item: z.looseObject({}).nullable().describe('The resource as its list shows it; null unless it is set.'),
})

/** The stream as it is sent. */
const ChangeStream = z.string().meta({
  id: 'ChangeStream',
  description:
    'Server-sent events; x-events describes the data of each. The id of an event is a cursor. A comment is sent ' +
    'every 15 seconds.',
  examples: [
    'event: reset\ndata: {"reason":"start"}\nid: djEuMTIwMC40Mg\n\n' +
      'event: change\ndata: {"type":"server","id":"9b6e1c1e-6c0f-4e53-8d5c-6f0a4b0f7c11","is":"removed",' +
      '"item":null}\n\nid: djEuMTIwNC40Mw\n\n',
  ],
})

const RANGE = {
  cursor: Cursor.optional().describe('Id of the last event of an earlier stream; returns what changed since.'),
  type: z
    .array(z.enum(CHANGE_TYPES))
    .max(CHANGE_TYPES.length)
    .optional()
    .describe('Returns only changes of this type; may be given more than once.'),
}

const changes = routesUnder({ path: '/v1/changes' })

export const streamChanges = changes.get('stream_changes', '', {
  summary: 'Stream changes of all resources',
  description:
    'Server-sent events of the account. `reset`: read again what you show. `change`: the new state of a resource, as ' +
    'its list shows it, at most four times a second for each. Reconnect with the newest id as `cursor`, or in the ' +
    'header Last-Event-ID, and with the same types, to get what changed since. A change can be sent twice. The ' +
    'stream ends after 30 minutes, when the rights of the caller change, and when its reader is too slow. At most 4 ' +
    'streams for each session or token, and 50 for an account.',
  mediaType: 'text/event-stream',
  query: z.strictObject(RANGE),
  answers: { 200: ChangeStream },
  events: { reset: Reset, change: Change },
  refuses: [400, 503],
})

export const readChanges = changes.get('read_changes', '/read', {
  summary: 'Get changes of all resources',
  description:
    'For programs that poll, instead of the stream: what changed after the cursor. Without a cursor, the answer only ' +
    'has the cursor to continue from. With a reset, changes are missing: read again what you need. A change can be ' +
    'returned twice.',
  query: z.strictObject({
    ...RANGE,
    cursor: Cursor.optional().describe('cursor of an earlier answer; returns what changed since.'),
    wait: z.coerce
      .number()
      .int()
      .min(1)
      .max(30)
      .optional()
      .describe('Seconds to wait for a change; by default the call answers at once.'),
  }),
  answers: {
    200: z.strictObject({
      reset: z
        .enum(RESET_REASONS)
        .nullable()
        .describe('Why changes are missing before these; start without a cursor; null when none are missing.'),
      changes: z.array(Change).describe('Each resource in its newest state.'),
      cursor: z.string().describe('Pass it as cursor in the next call.'),
    }),
  },
  refuses: [400, 503],
})

export const CHANGE_ROUTES = [streamChanges, readChanges] as const
