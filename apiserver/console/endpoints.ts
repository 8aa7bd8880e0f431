/** The serial console: input in small pieces, output as server-sent events. */
import { rateLimited } from '../../domain/problem.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { openConsoleSession } from '../../db/console/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { EVENT_STREAM_HEADERS, openEventStream } from '../../kit/http/event-stream.ts'
import { type Budget, createBuckets } from '../../kit/http/rates.ts'
import {
  type ConsoleStatus,
  readServerConsole,
  sendServerConsoleInput,
  streamServerConsole,
} from '../../resources/console/index.ts'
import { auditEntryOf } from '../kit/change/audit.ts'
import type { Consoles } from './consoles.ts'
import { readConsole } from './read.ts'
import type { Parts } from '../kit/parts.ts'
import type { Servers } from '../nouns/server/index.ts'

const STREAM_MINUTES_MAXIMUM = 30
/** How long the host may take to answer when a reader does not wait. */
const MEETING_MILLISECONDS = 2_000
/** Unread characters queued for a watcher. A watcher with more is disconnected, and reconnects for a new tail. */
const UNREAD_MAXIMUM = 1_500_000
const INPUT_BUDGET: Budget = { name: 'console-input', perMinute: 50 * 60, burst: 50 }
/** Sessions that this process knows to be audited. */
const KNOWN_SESSIONS_MAXIMUM = 10_000

export function consoleEndpoints(parts: Parts, servers: Servers, consoles: Consoles): readonly Endpoint[] {
  const takeBudget = createBuckets(parts.clock)
  const known = new Set<string>()
  return [
    customerEndpoint(sendServerConsoleInput, async (call) => {
      const { caller, params, body } = call
      const server = servers.find(caller.accountId, params.id) ?? (await servers.read(caller.accountId, params.id))
      servers.requireOwn(server)
      const { retryAfterSeconds } = takeBudget(INPUT_BUDGET, server.metadata.uid ?? params.id)
      if (retryAfterSeconds > 0) throw rateLimited(retryAfterSeconds, 'Too much input for this console at once.')
      consoles.requireWritable(server)
      await auditSession(parts, known, call)
      await consoles.write(server, Buffer.from(body.data, 'base64'))
      return { status: 204 }
    }),
    customerEndpoint(streamServerConsole, async (call) => {
      const server = await servers.read(call.caller.accountId, call.params.id)
      consoles.requireRoom(server)
      await parts.db
        .transaction()
        .execute((tx) =>
          appendAudit(tx, auditEntryOf(call, { resourceId: call.params.id, detail: { access: 'output' } }), parts),
        )
      return stream(parts, call, consoles.of(server))
    }),
    customerEndpoint(readServerConsole, async (call) => {
      const { caller, params, query, request } = call
      const server = await servers.read(caller.accountId, params.id)
      consoles.requireRoom(server)
      await parts.db
        .transaction()
        .execute((tx) =>
          appendAudit(tx, auditEntryOf(call, { resourceId: params.id, detail: { access: 'output' } }), parts),
        )
      const read = await readConsole(consoles.of(server), parts.clock, {
        since: query.since,
        waitFor: query.wait_for,
        waitMilliseconds: (query.wait ?? 0) * 1_000 || MEETING_MILLISECONDS,
        signal: request.signal,
      })
      return { status: 200, body: { console: read } }
    }),
  ]
}

/** The first input of a session is recorded before it reaches the guest. */
async function auditSession(
  parts: Parts,
  known: Set<string>,
  call: Call<typeof sendServerConsoleInput, Customer>,
): Promise<void> {
  const { caller, params, body, now } = call
  const session = { accountId: caller.accountId, serverId: params.id, sessionId: body.session_id }
  const key = `${session.accountId} ${session.serverId} ${session.sessionId}`
  if (known.has(key)) return
  await parts.db.transaction().execute(async (tx) => {
    if (!(await openConsoleSession(tx, session, now))) return
    await appendAudit(
      tx,
      auditEntryOf(call, { resourceId: params.id, detail: { access: 'input', session_id: body.session_id } }),
      parts,
    )
  })
  known.add(key)
  if (known.size > KNOWN_SESSIONS_MAXIMUM)
    for (const oldest of known) {
      known.delete(oldest)
      break
    }
}

function stream(
  { clock }: Parts,
  { request, now }: Call<typeof streamServerConsole, Customer>,
  console: ReturnType<Consoles['of']>,
): Answer {
  const endsAt = new Date(now.getTime() + STREAM_MINUTES_MAXIMUM * 60_000)
  const textOf = (status: Omit<ConsoleStatus, 'stream_ends_at'>) =>
    `event: status\ndata: ${JSON.stringify({ ...status, stream_ends_at: endsAt.toISOString() })}\n\n`
  let leave = () => {}
  const channel = openEventStream({
    clock,
    signal: request.signal,
    unreadMaximum: UNREAD_MAXIMUM,
    endsAfterMilliseconds: STREAM_MINUTES_MAXIMUM * 60_000,
    onClosed: () => leave(),
  })
  leave = console.join((event) => {
    if (event.event === 'end') channel.end()
    else channel.push(event.event === 'bytes' ? event.text : textOf(event.status))
  })
  return { status: 200, stream: channel, headers: EVENT_STREAM_HEADERS }
}
