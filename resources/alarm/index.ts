/** What needs an operator now: public shape and route. Computed at every read; nothing is stored. */
import { z } from 'zod'
import {
  ALARM_KINDS,
  ALARM_SEVERITIES,
  ALARMS_OF_KIND_MAXIMUM,
  type Alarm,
  ALERT_OF,
} from '../../domain/alarm/rules.ts'
import { completeListOf, DateTime } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const AlarmView = z
  .strictObject({
    kind: z.enum(ALARM_KINDS).describe('What is wrong.'),
    severity: z.enum(ALARM_SEVERITIES).describe('How urgent it is.'),
    message: z.string().describe('Human-readable text.'),
    resource: z
      .strictObject({
        type: z.string().describe('Type of the resource, as in operations.'),
        id: z.string().describe('Id of the resource.'),
        name: z.string().nullable().describe('Hostname, name, title or address; null without any.'),
      })
      .nullable()
      .describe('What it is about; null for more than one resource.'),
    account_id: z.string().nullable().describe('Account that it belongs to; null for the platform.'),
    since: DateTime.nullable().describe('Time since when it is so; null where it is not known.'),
    alert: z.string().nullable().describe('Alert of the chart about the same condition; null for none.'),
  })
  .meta({ id: 'Alarm' })

export const listAlarms = routesUnder({
  path: '/v1/operator/alarms',
  staff: 'any',
  access: { resource: 'operations', scope: 'cluster' },
}).get('list_alarms', '', {
  summary: 'List what needs an operator now',
  description:
    'What the records of the platform show: lost nodes, operations beyond their deadline, resources that do not get ' +
    'on without help, missing records, archives of databases that pause or fail, and audit logs that do not verify. ' +
    `The most severe first, at most ${ALARMS_OF_KIND_MAXIMUM} of a kind, and then one that says how many more there ` +
    'are. Rates and durations are only in the ' +
    'metrics and their alerts.',
  access: { verb: 'list', resource: 'operations', scope: 'cluster' },
  answers: { 200: completeListOf(AlarmView) },
})

export const ALARM_ROUTES = [listAlarms] as const

export const toAlarmView = ({ accountId, since, ...alarm }: Alarm): z.infer<typeof AlarmView> => ({
  ...alarm,
  account_id: accountId,
  since: since?.toISOString() ?? null,
  alert: ALERT_OF[alarm.kind],
})
