/** Generates load in a separate process, so that it does not use the time of the measured one: closed loops of requests
 *  on keep-alive connections, each with a different token. Reports `{units, seconds, failures}` as JSON. Started with
 *  fork by `loadFrom`. */
import { fork } from 'node:child_process'
import { Agent, request } from 'undici'
import { defined } from '../domain/defined.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { onParentMessage, sendToParent } from '../kit/sys/process.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'
import { closedLoop } from './runner.ts'

interface Order {
  readonly url: string
  readonly tokens: readonly string[]
  readonly clients: number
  readonly seconds: number
  /** The body of POST requests, with a unique number in place of `{number}`; GET requests when absent. */
  readonly body?: string
}

interface Report {
  readonly units: number
  readonly seconds: number
  readonly failures: number
}

/** Runs the loops in a child process. Throws when an answer was not a success. */
export async function loadFrom(order: Order): Promise<Report> {
  const child = fork(import.meta.filename, { execArgv: [] })
  const report = await new Promise<Report>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Report)) // the child below says nothing else
    child.once('exit', (code) => reject(new Error(`the load ended with ${code}`)))
    child.send(order)
  })
  child.disconnect()
  if (report.failures > 0) throw new Error(`${report.failures} of ${report.units} requests failed`)
  return report
}

export interface Flood {
  readonly origin: string
  readonly token: string
  readonly seconds: number
  readonly listsPerSecond: number
  readonly signInsPerSecond: number
}

/** Sends at a steady pace, regardless of how long the answers take; counts the lists that were answered and those that
 *  were refused with 429 and a Retry-After. Throws for any other answer. */
export async function floodFrom(flood: Flood): Promise<{ readonly ok: number; readonly refused: number }> {
  const child = fork(import.meta.filename, { execArgv: [] })
  const report = await new Promise<{ ok: number; refused: number; other: number }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { ok: number; refused: number; other: number })) // as above
    child.once('exit', (code) => reject(new Error(`the flood ended with ${code}`)))
    child.send(flood)
  })
  child.disconnect()
  if (report.other > 0) throw new Error(`${report.other} requests of the flood had another answer`)
  return report
}

if (import.meta.main) {
  onParentMessage((message) => {
    if (isFlood(message)) return void sendFlood(message).then((counts) => sendToParent(counts))
    const { url, tokens, clients, seconds, body: sent } = message as Order // from loadFrom
    const dispatcher = new Agent({ connections: clients })
    const load = newUuid(systemRandom)
    let [turn, failures] = [0, 0]
    const ask = async () => {
      const number = turn++
      const { statusCode, body } = await request(url, {
        dispatcher,
        method: sent === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${tokens[number % tokens.length]}`,
          ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...defined({ body: sent?.replace('{number}', `${load}-${number}`) }),
      })
      await body.arrayBuffer()
      if (statusCode >= 300) failures += 1
    }
    void closedLoop(clients, seconds, ask).then((done) => sendToParent({ ...done, failures }))
  })
}

const isFlood = (message: unknown): message is Flood =>
  typeof message === 'object' && message !== null && 'listsPerSecond' in message

async function sendFlood({ origin, token, seconds, listsPerSecond, signInsPerSecond }: Flood) {
  const counts = { ok: 0, refused: 0, other: 0 }
  const list = async () => {
    const { statusCode, headers, body } = await request(`${origin}/v1/servers?limit=20`, {
      headers: { authorization: `Bearer ${token}` },
    })
    await body.arrayBuffer()
    if (statusCode === 200) counts.ok += 1
    else if (statusCode === 429 && headers['retry-after'] !== undefined) counts.refused += 1
    else counts.other += 1
  }
  const signIn = async () => {
    const { statusCode, body } = await request(`${origin}/v1/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'nobody@example.com', password: 'not the password' }),
    })
    await body.arrayBuffer()
    if (statusCode !== 401 && statusCode !== 429) counts.other += 1
  }
  const paced = async (perSecond: number, work: () => Promise<void>) => {
    const begin = systemClock.monotonicMilliseconds()
    const pending: Promise<void>[] = []
    for (let number = 0; number < Math.max(1, perSecond * seconds); number++) {
      await systemClock.sleep(Math.max(0, begin + (number * 1_000) / perSecond - systemClock.monotonicMilliseconds()))
      pending.push(work())
    }
    await Promise.all(pending)
  }
  await Promise.all([paced(listsPerSecond, list), paced(signInsPerSecond, signIn)])
  return counts
}
