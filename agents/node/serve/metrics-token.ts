/** Authenticates readers of the agent's metrics, which contain the accounts and servers of the host. They must have the
 *  token in a file that the operator gives to agents and to readers. An agent cannot ask the cluster about a token that
 *  it received: a compromised host would collect the tokens. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { MetricsAccess } from '../../../kit/http/probes.ts'

const LOOPBACKS: readonly string[] = ['127.0.0.1', '::1', 'localhost']

export interface MetricsTokenOptions {
  /** File with the token. It may be replaced at any time. */
  readonly file: string | undefined
  /** Address at which the metrics are served. */
  readonly host: string
}

/** Checks an Authorization header. Without a file, only programs on the host itself may read. */
export function openMetricsToken({
  file,
  host,
}: MetricsTokenOptions): (authorization: string | undefined) => Promise<MetricsAccess> {
  if (file === undefined) return async () => (LOOPBACKS.includes(host) ? 'allowed' : 'forbidden')
  return async (authorization) => {
    const shown = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    const token = (await readFile(file, 'utf8').catch(() => '')).trim()
    return shown !== undefined && token !== '' && timingSafeEqual(sha256(shown), sha256(token))
      ? 'allowed'
      : 'unauthenticated'
  }
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()
