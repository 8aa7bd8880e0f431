/** What a person has set for the portal: one JSON object, of which the service reads only the language. */
import { z } from 'zod'
import { DateTime } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

/** Of the object as JSON in UTF-8. */
const PREFERENCES_BYTES_MAXIMUM = 8_192
/** White space and escapes make a body longer than what it says. */
const BODY_BYTES_MAXIMUM = 6 * PREFERENCES_BYTES_MAXIMUM

const Values = z.record(z.string(), z.unknown())
const Preferences = z
  .strictObject({
    preferences: Values.describe(
      'The object that was stored last. Before, it has the `locale` of the browser that signed up, or nothing.',
    ),
    updated_at: DateTime.nullable().describe(
      'Time when they were stored last, which may be at sign-up, with the `locale`; null when they never were.',
    ),
  })
  .meta({ id: 'Preferences' })

const verbs = routesUnder({
  path: '/v1/account/preferences',
  permission: 'self',
  credentials: ['session'],
})

export const getPreferences = verbs.get('get_preferences', '', {
  summary: 'Get your preferences',
  description:
    'They belong to the person and are the same in all accounts. API tokens and support sessions are refused: ' +
    'preferences are for the portal.',
  answers: { 200: Preferences },
})
export const setPreferences = verbs.put('set_preferences', '', {
  summary: 'Replace your preferences',
  description:
    'One JSON object of at most 8 KiB; never store secrets in it. With If-Match it is replaced only if nobody has ' +
    'changed it since. The service reads one member: `locale`, such as `de`, is the language of your mails.',
  audit: 'account.preferences_changed',
  body: z.strictObject({
    preferences: Values.refine(
      (values) => new TextEncoder().encode(JSON.stringify(values)).length <= PREFERENCES_BYTES_MAXIMUM,
      `must have at most ${PREFERENCES_BYTES_MAXIMUM} bytes as JSON`,
    ).describe('Any JSON object.'),
  }),
  example: { preferences: { theme: 'dark', locale: 'de' } },
  bodyBytesMaximum: BODY_BYTES_MAXIMUM,
  answers: { 200: Preferences },
})

export const PREFERENCE_ROUTES = [getPreferences, setPreferences] as const
