/** The serial console of a server: shapes and routes. */
import { z } from 'zod'
import { route } from '../define.ts'
import { SERVER_STATES } from '../server/index.ts'
import { DateTime, Id, Uuid } from '../shapes.ts'

const AREA = 'Console, metadata, metrics, transfer'
export const CONSOLE_INPUT_BYTES_MAXIMUM = 4096
/** Of 4096 bytes in base64, with its padding. */
const CONSOLE_INPUT_TEXT_MAXIMUM = 5464

/** The data of the stream's `status` events. */
export const ConsoleStatus = z
  .strictObject({
    connected: z.boolean(),
    server_state: z.enum(SERVER_STATES),
    writable: z.boolean(),
    reason: z.enum(['server_stopped', 'host_unreachable', 'moved']).nullable(),
    stream_ends_at: DateTime,
  })
  .meta({ id: 'ConsoleStatus' })
export type ConsoleStatus = z.infer<typeof ConsoleStatus>

export const sendServerConsoleInput = route({
  id: 'send_server_console_input',
  method: 'POST',
  path: '/v1/servers/{id}/console/input',
  area: AREA,
  summary: 'Type into the serial console',
  permission: 'operate',
  description: 'At most 50 requests a second for each server. The first input of a session_id is audited.',
  audit: 'server.console_session',
  budget: 'console',
  params: z.strictObject({ id: Id }),
  body: z.strictObject({
    session_id: Uuid,
    data: z
      .base64()
      .min(1)
      .max(CONSOLE_INPUT_TEXT_MAXIMUM)
      .refine(
        (text) => Buffer.byteLength(text, 'base64') <= CONSOLE_INPUT_BYTES_MAXIMUM,
        `must have at most ${CONSOLE_INPUT_BYTES_MAXIMUM} bytes`,
      ),
  }),
  answers: { 204: null },
  refuses: [400, 404, 409, 503],
})

export const streamServerConsole = route({
  id: 'stream_server_console',
  method: 'GET',
  path: '/v1/servers/{id}/console/stream',
  area: AREA,
  summary: 'Follow the serial console',
  permission: 'operate',
  description:
    'Server-sent events: `tail` (base64 of the last 64 KiB), `status` (ConsoleStatus), then `output` (base64) ' +
    'for each chunk; a keepalive comment every 15 seconds. Ends after 30 minutes.',
  audit: 'server.console_session',
  isCredentialRead: true,
  mediaType: 'text/event-stream',
  params: z.strictObject({ id: Id }),
  answers: { 200: z.string() },
  refuses: [404, 409],
})

export const CONSOLE_ROUTES = [sendServerConsoleInput, streamServerConsole] as const
