/** The way from a simulated process to the in-process Kubernetes API, with everything that goes wrong on networks. */
import type { Transport, TransportRequest, TransportResponse } from '../../kit/kube/transport.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

export interface TransportFaults {
  latencyMilliseconds(): number
  /** A status to answer without doing anything, 0 for a connection that breaks, undefined to go on. */
  failsBefore(): number | undefined
  /** The effect happened, the answer is lost. */
  losesReply(): boolean
  /** The process dies after the effect and before the answer. */
  crashesAfterRequest(processName: string): boolean
  /** Asked for each watch event: `silent` is a connection that stays open and never says anything again. */
  watchFault(): 'cut' | 'silent' | 'duplicate' | undefined
}

const REASONS: Readonly<Record<number, string>> = {
  409: 'Conflict',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
}

function statusResponse(code: number): TransportResponse {
  const body = JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason: REASONS[code],
    code,
    message: `injected ${code}`,
    ...(code === 429 ? { details: { retryAfterSeconds: 1 } } : {}),
  })
  return {
    status: code,
    headers: { 'content-type': 'application/json', ...(code === 429 ? { 'retry-after': '1' } : {}) },
    text: async () => body,
    async *lines() {
      yield body
    },
  }
}

export interface TransportOptions {
  readonly process: SimulatedProcess
  readonly scheduler: Scheduler
  readonly faults: TransportFaults
  /** Whether the process is cut off from the API server now. */
  readonly isPartitioned: () => boolean
  readonly serve: Transport
}

export function simulatedTransport({ process, scheduler, faults, isPartitioned, serve }: TransportOptions): Transport {
  const epoch = process.epoch
  const clock = process.clock()
  const pause = () => clock.sleep(faults.latencyMilliseconds())
  const broken = (what: string) => Object.assign(new Error(`simulated network: ${what}`), { code: 'ECONNRESET' })

  async function* lines(response: TransportResponse, signal: AbortSignal | undefined): AsyncIterable<string> {
    for await (const line of response.lines()) {
      await pause()
      if (!process.isAlive(epoch) || isPartitioned()) await untilAborted(signal)
      const fault = faults.watchFault()
      if (fault === 'cut') throw broken('watch cut')
      if (fault === 'silent') await untilAborted(signal)
      yield line
      if (fault === 'duplicate') yield line
    }
  }

  return async (request: TransportRequest) => {
    const isWatch = /[?&]watch=(true|1)/.test(request.path)
    const isWrite = request.method !== 'GET'
    scheduler.note(`${process.name} ${request.method} ${request.path}`)
    await pause()
    if (isPartitioned()) {
      await clock.sleep(10_000, request.signal)
      throw broken('partition')
    }
    const failure = faults.failsBefore()
    if (failure === 0) throw broken('connection reset')
    // A conflict is only believable for conditional writes of existing objects.
    if (failure !== undefined && (failure !== 409 || request.method === 'PUT' || request.method === 'PATCH'))
      return statusResponse(failure)
    const response = await process.bound(serve(request))
    if (isWrite && faults.crashesAfterRequest(process.name)) {
      process.crash()
      return await new Promise<never>(() => {})
    }
    if (isWrite && faults.losesReply()) throw broken('reply lost')
    await pause()
    if (!isWatch) return response
    return { ...response, text: () => response.text(), lines: () => lines(response, request.signal) }
  }
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(Object.assign(new Error('simulated network: aborted'), { code: 'ECONNRESET' }))
    if (signal?.aborted) end()
    else signal?.addEventListener('abort', end, { once: true })
  })
}
