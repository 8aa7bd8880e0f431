/** Follows the changes of everything in the account: a line for each. Reconnects automatically, with the cursor of the
 *  last event, so that nothing is missed. */
import type { Clock } from '../kit/sys/clock.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { type Api, asMembers, isMembers, type Members, parseJson } from './api.ts'
import { events } from './events.ts'
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

const RECONNECT_MILLISECONDS = 500
const RECONNECTS_MAXIMUM = 60
/** Fields that say most of a resource, the first that it has. */
const NAMES = ['name', 'hostname', 'title', 'address', 'kind', 'zone'] as const
const STATES = ['status', 'state'] as const

/** Resolves when the signal has ended it. Throws a Failure when the service refuses. */
export async function watch({ api, terminal, clock, signal }: WatchParts, choice: WatchChoice): Promise<void> {
  let cursor = ''
  for (let lost = 0; !signal.aborted; ) {
    try {
      const query = new URLSearchParams(choice.types.map((type): [string, string] => ['type', type]))
      if (cursor !== '') query.set('cursor', cursor)
      const response = await api.open({ method: 'GET', path: `/v1/changes?${query}`, signal })
      for await (const { event, data, id } of events(response)) {
        lost = 0
        if (id !== '') cursor = id
        if (event !== '') show(terminal, choice, event, data)
      }
    } catch (error) {
      if (signal.aborted) return
      const isPassing =
        !(error instanceof Failure) || error.code === EXIT.unreachable || /^(429|5\d\d)/.test(error.message)
      if (!isPassing || (lost += 1) > RECONNECTS_MAXIMUM) throw error
      if (lost === 1) terminal.writeError('connection lost, reconnecting …\n')
    }
    await clock.sleep(RECONNECT_MILLISECONDS, signal)
  }
}

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
