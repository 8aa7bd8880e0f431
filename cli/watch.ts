/** Follows the changes of everything in the account: a line for each. Reconnects automatically, with the cursor of the
 *  last event, so that nothing is missed. */
import { follow } from '../client/follow.ts'
import type { Clock } from '../kit/sys/clock.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { type Api, asMembers, isMembers, type Members, parseJson } from './api.ts'
import { EXIT, Failure } from './exit.ts'
import { oneLine } from './output.ts'

export interface WatchParts {
  readonly api: Api
  readonly terminal: Terminal
  readonly clock: Clock
  /** Ends it. */
  readonly signal: AbortSignal
}

export interface WatchChoice {
  /** Types to show; all when empty. */
  readonly types: readonly string[]
  /** A line of JSON for each event, as the service sends it. */
  readonly isJson: boolean
}

/** About half a minute. */
const FAILURES_MAXIMUM = 6
/** Fields that say most of a resource, the first that it has. */
const NAMES = ['name', 'hostname', 'title', 'address', 'kind', 'zone'] as const
const STATES = ['status', 'state'] as const

/** Resolves when the signal has ended it. Throws a Failure when the service refuses, or does not come back. */
export async function watch({ api, terminal, clock, signal }: WatchParts, choice: WatchChoice): Promise<void> {
  const parts = follow({
    open(cursor, connection) {
      const query = new URLSearchParams(choice.types.map((type): [string, string] => ['type', type]))
      if (cursor !== '') query.set('cursor', cursor)
      return api.open({ method: 'GET', path: `/v1/changes?${query}`, signal: connection })
    },
    onLost(error, failures) {
      if (!isPassing(error) || failures > FAILURES_MAXIMUM) throw error
      if (failures === 1) terminal.writeError('connection lost, reconnecting …\n')
    },
    signal,
    timer: {
      milliseconds: () => clock.monotonicMilliseconds(),
      pause: (milliseconds, until) => clock.sleep(milliseconds, until),
    },
  })
  for await (const { event, data } of parts) show(terminal, choice, event, data)
}

/** Whether waiting may cure it: a lost connection, or a service that is busy. */
const isPassing = (error: unknown): boolean =>
  !(error instanceof Failure) ||
  error.code === EXIT.unreachable ||
  error.code === EXIT.interrupted ||
  /^(429|5\d\d)/.test(error.message)

function show(terminal: Terminal, { isJson }: WatchChoice, event: string, data: string): void {
  if (isJson) return terminal.write(`${JSON.stringify({ event, ...asMembers(parseJson(data)) })}\n`)
  const { reason, type, id, is, item } = asMembers(parseJson(data))
  if (event === 'change') terminal.write(`${[type, id, is, ...factsOf(item)].map(oneLine).join('  ')}\n`)
  else if (event === 'reset' && reason !== 'start')
    terminal.writeError('Changes are missing here: list again what you need.\n')
}

const factsOf = (item: unknown): readonly unknown[] =>
  isMembers(item) ? [first(item, NAMES), first(item, STATES)].filter((fact) => fact !== undefined) : []

const first = (item: Members, fields: readonly string[]): unknown =>
  fields.map((field) => item[field]).find((value) => typeof value === 'string' && value !== '')
