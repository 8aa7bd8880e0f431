/** Clients that make one ConfigMap after the other and try again by the rules of client-go, which kubectl and
 *  controllers are made with: after an answer that says when (429 or 5xx with Retry-After), and on a lasting connection
 *  that the server closed before it had the request. Everything else is reported to the caller. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { promisify } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildTool } from '../../tools/cluster/build.ts'

export interface WriterAccess {
  /** `https://host:port` of the API server. */
  readonly url: string
  /** PEM. */
  readonly authority: string
  readonly token: string
}

export interface WriterAccount {
  /** Names of those that an API server took. */
  readonly taken: readonly string[]
  /** How often a try was refused, by what was said. */
  readonly refused: Readonly<Record<string, number>>
  /** What was reported to the caller. */
  readonly failed: readonly string[]
}

export interface ApiWriter {
  readonly name: string
  /** Once its last write has been answered. */
  stop(): Promise<WriterAccount>
}

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
/** As client-go has it. */
const TRIES_MAXIMUM = 11
/** What comes late is not lost. */
const PATIENCE_MILLISECONDS = 240_000
const BATCH = 60
const run = promisify(execFile)

const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })

interface Try {
  readonly isTaken: boolean
  readonly said: string
  /** When it is tried again; undefined for never. */
  readonly waitMilliseconds?: number
}

/** On a connection that stays, or on a new one for each write. */
export function startWriter(name: string, access: WriterAccess, isLasting: boolean): ApiWriter {
  const agent = new Agent({ keepAlive: isLasting, maxSockets: 1 })
  const [taken, failed, refused]: [string[], string[], Record<string, number>] = [[], [], {}]
  let isOver = false
  const writing = (async () => {
    for (let number = 0; !isOver; number++) {
      const written = `${name}-${number}`
      for (let tries = 1; ; tries++) {
        const { isTaken, said, waitMilliseconds } = await send(access, agent, written)
        if (isTaken) taken.push(written)
        else refused[said] = (refused[said] ?? 0) + 1
        if (!isTaken && waitMilliseconds !== undefined && tries < TRIES_MAXIMUM) {
          await sleep(waitMilliseconds)
          continue
        }
        if (!isTaken) failed.push(`${written}: ${said}`)
        break
      }
    }
  })()
  return {
    name,
    async stop() {
      isOver = true
      await writing
      agent.destroy()
      return { taken, failed, refused }
    },
  }
}

const send = ({ url, authority, token }: WriterAccess, agent: Agent, name: string): Promise<Try> =>
  new Promise((resolve) => {
    const sent = request(`${url}${CONFIG_MAPS}`, {
      method: 'POST',
      ca: authority,
      agent,
      timeout: PATIENCE_MILLISECONDS,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    })
    sent.once('response', (response) => {
      const { statusCode: status = 0, headers } = response
      const seconds = Number(headers['retry-after'] ?? Number.NaN)
      const isAgain = (status === 429 || status >= 500) && Number.isFinite(seconds)
      response.resume().once('close', () =>
        resolve({
          isTaken: status === 201,
          said: `${status}${isAgain ? ' and when to try again' : ''}`,
          ...(isAgain ? { waitMilliseconds: seconds * 1_000 } : {}),
        }),
      )
    })
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.once('error', (error: NodeJS.ErrnoException) => {
      const isClosed = sent.reusedSocket && error.code === 'ECONNRESET'
      const said = isClosed ? 'a lasting connection was closed' : (error.code ?? error.message)
      resolve({ isTaken: false, said, ...(isClosed ? { waitMilliseconds: 0 } : {}) })
    })
    sent.end(JSON.stringify(configMap(name)))
  })

/** kubectl itself: one process for many writes on its connection, one after the other. */
export function startKubectl(name: string, kubeconfigFile: string): ApiWriter {
  const [taken, failed]: [string[], string[]] = [[], []]
  let isOver = false
  const writing = (async () => {
    const program = await buildTool('kubectl')
    for (let round = 0; !isOver; round++) {
      const items = Array.from({ length: BATCH }, (_, number) => configMap(`${name}-${round}-${number}`))
      const file = `${kubeconfigFile}.batch`
      await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
      const words = ['--kubeconfig', kubeconfigFile, 'create', '-o', 'name', '-f', file]
      const { stdout, stderr } = await run(program, words).catch((error: { stdout: string; stderr: string }) => error)
      taken.push(...stdout.split('\n').flatMap((line) => /^configmap\/(.+)$/.exec(line)?.[1] ?? []))
      failed.push(...stderr.split('\n').filter((line) => line !== ''))
    }
  })()
  return {
    name,
    async stop() {
      isOver = true
      await writing
      return { taken, failed, refused: {} }
    },
  }
}
