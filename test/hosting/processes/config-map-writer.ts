/** A client that makes one ConfigMap after the other, and tries again as clients do whose server stops. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeClient } from './hosted.ts'

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const TRIES_MINIMUM = 5
const PAUSE_MILLISECONDS = 100
let prefixes = 0

export interface Written {
  /** Names of those that no server took, each with what its tries were answered. */
  readonly failed: readonly string[]
  /** Names of those that one took and that are not there. */
  readonly lost: readonly string[]
  readonly count: number
}

/** It writes while the work is done; throws what that throws. A write has failed when it was tried five times, and for
 *  so long. Between two writes it waits, if it is to. */
export async function whileWriting(
  client: KubeClient,
  work: () => Promise<unknown>,
  { patienceMilliseconds = 0, betweenMilliseconds = 0 } = {},
): Promise<Written> {
  const stopping = new AbortController()
  const [failed, taken]: [string[], string[]] = [[], []]
  const prefix = `written-${prefixes++}`
  const writing = (async () => {
    for (let number = 0; !stopping.signal.aborted; number++) {
      const name = `${prefix}-${number}`
      const refusals = await write(client, name, patienceMilliseconds)
      if (refusals === undefined) taken.push(name)
      else failed.push(`${name}: ${refusals.join(', ')}`)
      if (betweenMilliseconds > 0)
        await sleep(betweenMilliseconds, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  try {
    await work()
  } finally {
    stopping.abort()
    await writing
  }
  const listed = JSON.stringify((await client.send('GET', CONFIG_MAPS)).body)
  return { failed, lost: taken.filter((name) => !listed.includes(`"${name}"`)), count: taken.length }
}

/** Undefined when it was taken; what each try was answered otherwise. */
async function write(
  client: KubeClient,
  name: string,
  patienceMilliseconds: number,
): Promise<readonly string[] | undefined> {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }
  const deadline = performance.now() + patienceMilliseconds
  const refusals: string[] = []
  for (let tries = 1; tries <= TRIES_MINIMUM || performance.now() < deadline; tries++) {
    const refusal = await client.send('POST', CONFIG_MAPS, body).then(
      // The answer of the try before may have been lost.
      ({ status }) => (status === 201 || (tries > 1 && status === 409) ? undefined : String(status)),
      String,
    )
    if (refusal === undefined) return undefined
    refusals.push(refusal)
    if (tries >= TRIES_MINIMUM) await sleep(PAUSE_MILLISECONDS)
  }
  return refusals
}
