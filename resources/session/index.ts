/** The portal sessions of a user: public shape and routes. */
import { z } from 'zod'
import { DateTime, Uuid } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { ObjectName } from '../kit/fields.ts'

export const Session = z
  .strictObject({
    id: Uuid,
    created_at: DateTime,
    last_seen_at: DateTime,
    expires_at: DateTime,
    user_agent: z.string(),
    source_ip: z.string(),
    is_current: z.boolean(),
  })
  .meta({ id: 'Session' })

const sessions = verbsOf({
  path: '/v1/account/sessions',
  noun: 'session',
  view: Session,
  credentials: ['session'],
  permission: 'self',
  isRefusedToSupport: true,
})

export const listSessions = sessions.listWhole('list_sessions', {
  summary: 'List your sessions',
  description: 'Your active sessions, most recently used first.',
})
export const endSession = sessions.remove('end_session', {
  summary: 'End one of your sessions',
  audit: 'auth.session_ended',
  params: z.strictObject({ id: ObjectName }),
  refuses: [404],
})

export const SESSION_ROUTES = [listSessions, endSession] as const
