/** Clients that write all the time and remember what went wrong. */
import { randomInt } from 'node:crypto'
import { Agent, request } from 'undici'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Writer {
  /** How many writes were answered, in all. */
  readonly count: number
  /** Ends it once its write has been answered; answers what went wrong. */
  stop(): Promise<readonly string[]>
}

const PAUSE_MILLISECONDS = 150
/** What comes late is not lost: pods start meanwhile, on a machine that may have little to give. */
const PATIENCE_MILLISECONDS = 240_000

/** Writes again and again; a write that throws was lost. */
export function startWriter(name: string, write: (turn: number) => Promise<void>): Writer {
  const faults: string[] = []
  let count = 0
  let isOver = false
  const running = (async () => {
    while (!isOver) {
      await write(count).catch((error: unknown) => faults.push(`${name} ${count}: ${String(error)}`))
      count++
      await sleep(PAUSE_MILLISECONDS)
    }
  })()
  return {
    get count() {
      return count
    },
    async stop() {
      isOver = true
      await running
      return faults
    },
  }
}

/** Makes a group of servers and removes it again, on connections that stay or on a new one for each request. */
export function groupWriter(url: string, token: string, isLasting: boolean): (turn: number) => Promise<void> {
  const unlike = randomInt(1e9)
  const dispatcher = new Agent({ connections: 1, pipelining: isLasting ? 1 : 0 })
  const send = async (method: 'POST' | 'DELETE', path: string, body?: object): Promise<unknown> => {
    const answer = await request(url + path, {
      method,
      dispatcher,
      headersTimeout: PATIENCE_MILLISECONDS,
      bodyTimeout: PATIENCE_MILLISECONDS,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    })
    const text = await answer.body.text()
    if (answer.statusCode >= 300) throw new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return async (turn) => {
    const name = `group-${unlike}-${turn}`
    // as the route answers
    const { server_group: group } = (await send('POST', '/v1/server-groups', {
      name,
      zone: 'eu-1a',
      spread: 'host',
    })) as {
      server_group: { id: string }
    }
    await send('DELETE', `/v1/server-groups/${group.id}`)
  }
}
