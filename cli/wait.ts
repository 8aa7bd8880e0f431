/** Waits for an operation, with its steps and events: on one line in a terminal, else line by line. */
import type { Clock } from '../kit/sys/clock.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { type Api, asMembers } from './api.ts'
import { EXIT, Failure } from './exit.ts'
import { CLEAR_LINE } from './progress.ts'

export interface Operation {
  readonly id: string
  readonly kind: string
  readonly status: string
  readonly step: string
  readonly step_index: number
  readonly step_count: number
  readonly error: string
  readonly events?: readonly { readonly at: string; readonly kind: string; readonly message: string }[]
}

export interface WaitParts {
  readonly api: Api
  readonly terminal: Terminal
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The service answers earlier when something changes. Changes between two requests are seen after this time at
 *  most. */
const WAIT_SECONDS = 5
const PAUSE_MILLISECONDS = 250
/** A service that asks for more is asked again nevertheless. */
const PAUSE_SECONDS_MAXIMUM = 60
/** Consecutive failures to reach the service that are tolerated. */
const LOST_MAXIMUM = 20

/** Resolves when the operation has succeeded. Throws a Failure when it failed or was cancelled, or when the wait was
 *  interrupted. */
export async function waitFor(parts: WaitParts, id: string): Promise<Operation> {
  const { api, terminal, clock, signal } = parts
  const reported = new Set<string>()
  let lost = 0
  let query = '' // first request: the current state
  for (;;) {
    let operation: Operation
    try {
      const { body } = await api.send({ method: 'GET', path: `/v1/operations/${id}${query}`, signal })
      operation = asMembers(body)['operation'] as Operation // Operation of the contract
      lost = 0
      query = `?wait=${WAIT_SECONDS}`
    } catch (error) {
      const isPassing =
        error instanceof Failure &&
        (error.code === EXIT.unreachable || error.message.startsWith('5') || error.message.startsWith('429'))
      if (signal.aborted) throw goesOn(terminal, id)
      if (!isPassing || (lost += 1) > LOST_MAXIMUM) throw error
      if (lost === 1 && error.code === EXIT.unreachable)
        terminal.writeError(`${terminal.isErrorTerminal ? CLEAR_LINE : ''}${error.message}; retrying …\n`)
      const wanted = Math.min(PAUSE_SECONDS_MAXIMUM, error.retryAfterSeconds ?? 0)
      await clock.sleep(Math.max(PAUSE_MILLISECONDS * lost, wanted * 1_000), signal)
      continue
    }
    reportProgress(terminal, operation, reported)
    if (operation.status === 'succeeded') return operation
    if (operation.status === 'failed' || operation.status === 'cancelled') {
      throw new Failure(
        EXIT.operationFailed,
        `operation ${operation.id} (${operation.kind}) ` +
          `${operation.status === 'failed' ? `failed: ${operation.error}` : 'was cancelled'}`,
      )
    }
    await clock.sleep(PAUSE_MILLISECONDS, signal)
    if (signal.aborted) throw goesOn(terminal, id)
  }
}

const goesOn = ({ isErrorTerminal }: Terminal, id: string): Failure =>
  new Failure(
    EXIT.interrupted,
    `${isErrorTerminal ? CLEAR_LINE : ''}stopped waiting; operation ${id} continues. Follow it with: svccloud ` +
      `operation wait ${id}`,
  )

function reportProgress(terminal: Terminal, operation: Operation, reported: Set<string>): void {
  const { kind, status, step, step_index, step_count, events = [] } = operation
  const isLive = terminal.isErrorTerminal
  for (const event of events) {
    const key = `${event.at} ${event.kind} ${event.message}`
    if (reported.has(key)) continue
    reported.add(key)
    terminal.writeError(`${isLive ? CLEAR_LINE : ''}${event.at}  ${kind}: ${event.message}\n`)
  }
  if (!isLive) return
  const isOver = status === 'succeeded' || status === 'failed' || status === 'cancelled'
  terminal.writeError(
    isOver
      ? CLEAR_LINE
      : `${CLEAR_LINE}${kind}: ${status}, step ${Math.min(step_index + 1, step_count)} of ${step_count} (${step})`,
  )
}
