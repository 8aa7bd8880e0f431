/** The serial console of a server: shapes and routes. */
import { z } from 'zod'
import { SERVER_STATES } from '../server/index.ts'
import { DateTime, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

export const CONSOLE_INPUT_BYTES_MAXIMUM = 4096
/** Length of 4096 bytes in base64, with padding. */
const CONSOLE_INPUT_TEXT_MAXIMUM = 5464

/** Data of the stream's `status` events. */
export const ConsoleStatus = z.strictObject({
  connected: z.boolean().describe('Whether the console of a running guest is attached.'),
  server_state: z.enum(SERVER_STATES).describe('State of the server.'),
  writable: z.boolean().describe('Whether the console accepts input.'),
  reason: z
    .enum(['server_stopped', 'host_unreachable', 'moved'])
    .nullable()
    .describe('Reason why no console is attached; null when one is.'),
  stream_ends_at: DateTime.describe('Time when the stream ends; open a new one then.'),
})
export type ConsoleStatus = z.infer<typeof ConsoleStatus>

/** The stream as it is sent. */
const ConsoleStream = z.string().meta({
  id: 'ConsoleStream',
  description: 'Server-sent events; x-events describes the data of each. A comment is sent every 15 seconds.',
  examples: [
    'event: tail\ndata: cm9vdEB3ZWI6fiMg\n\n' +
      'event: status\ndata: {"connected":true,"server_state":"started","writable":true,"reason":null,' +
      '"stream_ends_at":"2026-01-01T12:30:00.000Z"}\n\n' +
      'event: output\ndata: d2ViDQo=\n\n',
  ],
})

const console = routesUnder({
  path: '/v1/servers',
  permission: 'operate',
})

export const sendServerConsoleInput = console.post('send_server_console_input', '/{id}/console/input', {
  summary: 'Send input to the serial console',
  description: 'At most 50 requests per second and server. The first input of a session_id is audited.',
  audit: 'server.console_session',
  noDryRun: 'the guest gets the input at once',
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
  example: { session_id: '4c6df6c2-5d0b-4f3e-9a52-0f6f4a3c9d11', data: 'aG9zdG5hbWUK' },
  answers: { 204: null },
  refuses: [400, 404, 409, 503],
  budget: 'console',
})

export const streamServerConsole = console.get('stream_server_console', '/{id}/console/stream', {
  summary: 'Stream the serial console',
  description:
    'Server-sent events: `tail` (base64 of the last 64 KiB), `status` (ConsoleStatus), then `output` (base64) per ' +
    'chunk. A keepalive comment is sent every 15 seconds. The stream ends after 30 minutes.',
  isCredentialRead: true,
  audit: 'server.console_session',
  mediaType: 'text/event-stream',
  answers: { 200: ConsoleStream },
  events: {
    tail: z.base64().describe('The last 64 KiB of output of the guest, in base64.'),
    status: ConsoleStatus,
    output: z.base64().describe('Later output of the guest, in base64.'),
  },
  refuses: [404, 409],
})

export const readServerConsole = console.get('read_server_console', '/{id}/console/output', {
  summary: 'Get serial console output',
  description:
    'Returns at most 16 KiB of output after a position; without a position, the end of the last 64 KiB. Send ' +
    'input with send_server_console_input. Then read with the previous position and wait_for, such as the prompt.',
  isCredentialRead: true,
  audit: 'server.console_session',
  query: z.strictObject({
    since: z
      .string()
      .max(80)
      .regex(/^([a-z0-9]{1,64}-\d{1,15})?$/, 'must be the position of an earlier answer')
      .optional()
      .describe('position of an earlier answer; returns only later output.'),
    wait_for: z.string().min(1).max(200).optional().describe('Wait until this text appears.'),
    wait: z.coerce
      .number()
      .int()
      .min(1)
      .max(30)
      .optional()
      .describe('Seconds to wait for the text, or for any new output; by default the call answers at once.'),
  }),
  answers: {
    200: z.strictObject({
      console: z
        .strictObject({
          text: z.string().describe('Output of the guest.'),
          position: z.string().describe('End of the text; pass it as since in the next call.'),
          is_found: z.boolean().describe('Whether the text contains wait_for; true when none was given.'),
          has_more: z.boolean().describe('Whether more output is already available.'),
          is_incomplete: z.boolean().describe('Whether output before the text was dropped.'),
          connected: z.boolean().describe('Whether the console of a running guest is attached.'),
          server_state: z.enum(SERVER_STATES).describe('State of the server.'),
        })
        .describe('Output and state of the console.'),
    }),
  },
  refuses: [400, 404, 409],
  budget: 'console',
})

export const CONSOLE_ROUTES = [sendServerConsoleInput, streamServerConsole, readServerConsole] as const
