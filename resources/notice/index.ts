/** What a person should know about an account: public shape and routes. Computed at every read; only dismissals are
 *  stored. */
import { z } from 'zod'
import { type Notice, NOTICE_KINDS, NOTICE_SEVERITIES } from '../../domain/notice/rules.ts'
import { completeListOf, DateTime } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const NoticeView = z
  .strictObject({
    id: z.string().describe('The same for as long as its cause is the same.'),
    kind: z.enum(NOTICE_KINDS).describe('What it is about.'),
    severity: z.enum(NOTICE_SEVERITIES).describe('How urgent it is.'),
    message: z.string().describe('Human-readable text.'),
    resource: z
      .strictObject({
        type: z.string().describe('Type of the resource, as in audit entries.'),
        id: z.string().describe('Id of the resource; of a quota, its name.'),
        name: z.string().describe('Name of the resource.'),
      })
      .nullable()
      .describe('What it is about; null for the account or the caller.'),
    at: DateTime.nullable().describe('Time of the announced event; null for what is the case already.'),
    is_dismissed: z.boolean().describe('Whether the caller has dismissed it.'),
  })
  .meta({ id: 'Notice' })

const verbs = routesUnder({ path: '/v1/notices' })

export const listNotices = verbs.get('list_notices', '', {
  summary: 'List notices',
  description:
    'Announced maintenance, expiring certificates, API tokens and credits, quotas that are nearly used up, missing ' +
    'standing and an unconfirmed address; the most urgent first. API tokens and dismissals are those of the person ' +
    'who calls or created the calling token. Credits and standing need the permission billing.read.',
  query: z.strictObject({
    include_dismissed: z.enum(['true', 'false']).default('false').describe('Also returns dismissed notices.'),
  }),
  answers: { 200: completeListOf(NoticeView) },
})
export const dismissNotice = verbs.post('dismiss_notice', '/{id}/dismiss', {
  summary: 'Dismiss a notice',
  description: 'For the caller alone, and until its cause changes. API tokens are refused: only people dismiss.',
  permission: 'self',
  credentials: ['session'],
  audit: 'notice.dismiss',
  answers: { 204: null },
  refuses: [404],
})

export const NOTICE_ROUTES = [listNotices, dismissNotice] as const

export const toNoticeView = (notice: Notice, isDismissed: boolean): z.infer<typeof NoticeView> => ({
  ...notice,
  at: notice.at?.toISOString() ?? null,
  is_dismissed: isDismissed,
})
