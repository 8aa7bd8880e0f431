/** How the client waits for an operation when the service does not hold the question until something changes. */
import { expect, test } from 'vitest'
import {
  createClient,
  DeadlinePassed,
  EndlessList,
  OperationFailed,
  pages,
  SvccloudError,
  type Timer,
  waitForOperation,
} from '../../client/index.ts'
import { timer as realTimer } from '../../client/timer.ts'

interface Scripted {
  readonly status?: number
  readonly operation?: { readonly status: string; readonly step?: string; readonly deadline_at?: string }
  readonly headers?: Readonly<Record<string, string>>
  /** How long the service holds the question. */
  readonly heldSeconds?: number
}
const RUNNING: Scripted = { operation: { status: 'running', step: 'one' } }
const DONE: Scripted = { operation: { status: 'succeeded' } }

/** Waits through the script; answers the pauses in between, in seconds. */
async function pausesOf(...script: readonly Scripted[]): Promise<readonly number[]> {
  const pauses: number[] = []
  let now = 0
  const answers = script.values()
  const timer: Timer = {
    milliseconds: () => now,
    pause: async (milliseconds) => {
      now += milliseconds
      pauses.push(milliseconds / 1_000)
    },
  }
  const fetch = async (): Promise<Response> => {
    const { status = 200, operation, headers = {}, heldSeconds = 0 } = answers.next().value ?? {}
    now += heldSeconds * 1_000
    return new Response(JSON.stringify(operation ? { operation } : { status }), {
      status,
      headers: { 'content-type': 'application/json', ...headers },
    })
  }
  await waitForOperation(createClient({ url: 'http://127.0.0.1', fetch }), 'id', { timer })
  return pauses
}

test('asks again at once after news and after a question that was held', async () => {
  expect(await pausesOf(RUNNING, { operation: { status: 'running', step: 'two' } }, DONE)).toEqual([])
  expect(await pausesOf(RUNNING, { ...RUNNING, heldSeconds: 20 }, DONE)).toEqual([])
})

test('pauses when the service answers early with nothing new', async () => {
  expect(await pausesOf(RUNNING, RUNNING, RUNNING, DONE)).toEqual([1, 1])
  expect(await pausesOf(RUNNING, { ...RUNNING, heldSeconds: 5 }, DONE)).toEqual([1])
})

test.each([
  ['spreads what is left of the budget', { ratelimit: '"operation-reads";r=4;t=12' }, 3],
  ['waits for an empty budget', { ratelimit: '"operation-reads";r=0;t=12' }, 12],
  ['never hurries', { ratelimit: '"operation-reads";r=200;t=2' }, 1],
  ['obeys Retry-After first', { ratelimit: '"operation-reads";r=0;t=12', 'retry-after': '7' }, 7],
  ['never sleeps for long', { 'retry-after': '86400' }, 60],
  ['does not believe nonsense', { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }, 1],
])('%s', async (_why, headers, seconds) => {
  expect(await pausesOf(RUNNING, { ...RUNNING, headers }, DONE)).toEqual([seconds])
})

test('comes back after "too many" and "not now", but not for ever', async () => {
  const busy: Scripted = { status: 429, headers: { 'retry-after': '2' } }
  const down: Scripted = { status: 503 }
  expect(await pausesOf(busy, down, busy, down, busy, DONE)).toEqual([2, 1, 2, 1, 2])
  await expect(pausesOf(busy, busy, busy, busy, busy, down, DONE)).rejects.toMatchObject({ status: 503 })
})

test('other refusals and failures are final', async () => {
  await expect(pausesOf({ status: 404 }, DONE)).rejects.toThrow(SvccloudError)
  await expect(pausesOf(RUNNING, { operation: { status: 'failed' } })).rejects.toThrow(OperationFailed)
})

test('a wait ends after the deadline, by the clock of the service', async () => {
  const at = (date: string): Scripted => ({
    operation: { status: 'running', step: 'boot', deadline_at: '2001-01-01T12:00:00Z' },
    headers: { date },
    heldSeconds: 20,
  })
  await expect(pausesOf(at('Mon, 01 Jan 2001 12:00:59 GMT'), at('nonsense'), DONE)).resolves.toEqual([])
  await expect(pausesOf(at('Mon, 01 Jan 2001 12:01:01 GMT'), DONE)).rejects.toThrow(DeadlinePassed)
})

/** How many pages are read, until the error. */
async function readOf(cursorOf: (index: number) => string | null): Promise<{ readonly read: number; error: unknown }> {
  let read = 0
  const list = pages(async () => ({
    data: { items: [], next_cursor: cursorOf(read++) },
    response: new Response(null),
  }))
  const error: unknown = await list.next().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return { read, error }
}

test('pages end, or are an error', async () => {
  expect(await readOf((index) => (index === 2 ? null : String(index)))).toEqual({ read: 3, error: undefined })
  expect(await readOf((index) => String(index % 2))).toEqual({ read: 3, error: expect.any(EndlessList) })
  expect(await readOf(String)).toEqual({ read: 10_000, error: expect.any(EndlessList) })
})

test('a refusal has its code and its fields', () => {
  const problem = { reason: 'invalid', errors: [{ field: 'hostname', detail: 'is too long' }] }
  const error = new SvccloudError(new Response(null, { status: 400 }), problem as never)
  expect([error.code, error.fields]).toEqual(['invalid', { hostname: 'is too long' }])
  const other = new SvccloudError(new Response(null, { status: 502 }), undefined)
  expect([other.code, other.fields]).toEqual([undefined, {}])
})

test('a pause ends with its signal', async () => {
  const stop = new AbortController()
  const paused = realTimer.pause(60_000, stop.signal)
  stop.abort(new Error('enough'))
  await expect(paused).rejects.toThrow('enough')
  await expect(realTimer.pause(60_000, stop.signal)).rejects.toThrow('enough')
  await expect(realTimer.pause(0)).resolves.toBeUndefined()
})
