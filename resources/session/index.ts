/** The portal sessions of a person: public shape and routes. */
import { z } from 'zod'
import { route } from '../define.ts'
import { completeListOf, DateTime, Uuid } from '../shapes.ts'

const own = {
  area: 'Sign-in identities, e-mail verification, password',
  credentials: ['session'],
  permission: 'self',
  isRefusedToSupport: true,
} as const

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

export const listSessions = route({
  ...own,
  id: 'list_sessions',
  method: 'GET',
  path: '/v1/account/sessions',
  summary: 'List your sessions',
  description: 'Where you are signed in; what was used last comes first.',
  answers: { 200: completeListOf(Session) },
})
export const endSession = route({
  ...own,
  id: 'end_session',
  method: 'DELETE',
  path: '/v1/account/sessions/{id}',
  summary: 'End one of your sessions',
  audit: 'auth.session_ended',
  isDestructive: true,
  params: z.strictObject({ id: z.string().max(253) }),
  answers: { 204: null },
  refuses: [404],
})

export const SESSION_ROUTES = [listSessions, endSession] as const
