/** The add-ons' access to the platform: the API with the token of the cluster. The token is read for each request, so
 *  that a new one needs no restart. */
import { CLUSTER_LABELS } from '../domain/kubernetes-cluster/rules.ts'
import { readFile } from 'node:fs/promises'
import { type Client, createClient, OperationFailed, SvccloudError, waitForOperation } from '../client/index.ts'
import { Unavailable } from '../domain/problem.ts'
import type { Clock } from '../kit/sys/clock.ts'

export interface PlatformOptions {
  readonly url: string
  readonly tokenFile: string
  readonly clock: Clock
}

/** Label with the id of the cluster, on everything that a cluster has created. */
export const CLUSTER_LABEL = CLUSTER_LABELS.cluster

const TOO_MANY = 429
/** Attempts of one request that comes too early. */
const TRIES_MAXIMUM = 10
const PAUSE_SECONDS_MAXIMUM = 30

export function openPlatform({ url, tokenFile, clock }: PlatformOptions): Client {
  return createClient({
    url,
    async fetch(request) {
      for (let tries = 1; ; tries++) {
        const sent = request.clone()
        sent.headers.set('authorization', `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}`)
        const response = await fetch(sent).catch((error: unknown) => {
          throw new Unavailable('the API of the platform', error)
        })
        if (response.status !== TOO_MANY || tries === TRIES_MAXIMUM) return response
        const seconds = Math.min(PAUSE_SECONDS_MAXIMUM, Number(response.headers.get('retry-after') ?? 1) || 1)
        await clock.sleep(seconds * 1_000)
      }
    },
  })
}

/** Undefined when the object does not exist. */
export async function orNothing<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof SvccloudError && error.status === 404) return undefined
    throw error
  }
}

/** Resolves when the operation has ended, with any result. */
export async function untilEnded(client: Client, operationId: string): Promise<void> {
  try {
    await waitForOperation(client, operationId)
  } catch (error) {
    if (!(error instanceof OperationFailed)) throw error
  }
}
