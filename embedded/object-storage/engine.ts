/** The engine of one tenant: versitygw with the tenant's folders, behind sockets that only this process and the engine
 *  reach. It verifies signatures and stores objects. This process configures its user at each start. */
import { request as httpRequest } from 'node:http'
import { signRequest } from '../../kit/chunks/sign-request.ts'
import { byTheMachine, type Clock } from '../../kit/sys/clock.ts'
import type { InnerPaths, Isolation } from './isolation.ts'

/** Names of its sockets in the folder `run`. */
export const SOCKETS = { s3: 's3', admin: 'admin' } as const

export interface EngineKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}
/** Key of the engine's administrator, for one run. */
export type RootKey = EngineKey

/** Paths are absolute, because it changes its folder. Its cache of users is off: the cache uses texts in the memory of
 *  requests, which other requests overwrite, and could then confuse users. */
export const engineCommand = (
  { program, data, versions, run }: InnerPaths,
  { hasProc }: Pick<Isolation, 'hasProc'>,
): readonly string[] => [
  program,
  '--quiet',
  '--keep-alive',
  '--port',
  `${run}/${SOCKETS.s3}`,
  '--admin-port',
  `${run}/${SOCKETS.admin}`,
  '--iam-dir',
  `${run}/users`,
  '--iam-cache-disable',
  'posix',
  '--versioning-dir',
  versions,
  // It names temporary files through /proc.
  ...(hasProc ? [] : ['--disableotmp']),
  data,
]

export const engineEnvironment = ({ accessKeyId, secretAccessKey }: RootKey): Readonly<Record<string, string>> => ({
  ROOT_ACCESS_KEY: accessKeyId,
  ROOT_SECRET_KEY: secretAccessKey,
})

export const SIGNING_REGION = 'us-east-1'
/** Host that requests of this process sign; sockets have no names. */
const HOST = 'localhost'
const ANSWER_BYTES_MAXIMUM = 1024 * 1024
const PATIENCE_MILLISECONDS = 15_000

export interface StorageEngine {
  /** Throws unless a signed request of its user gets the correct response. */
  check(key: EngineKey): Promise<void>
  /** Gives the user this secret. */
  ensureUser(key: EngineKey): Promise<void>
  /** Creates the bucket for the user of the key, if it is missing. */
  ensureBucket(key: EngineKey, name: string): Promise<void>
  /** Size of an object, by its path and version; undefined when it does not exist. */
  sizeOf(key: EngineKey, path: string): Promise<number | undefined>
}

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export interface EngineOptions {
  /** Paths of its sockets. */
  readonly s3: string
  readonly admin: string
  readonly root: RootKey
  readonly clock: Clock
}

export function openEngine({ s3, admin: adminSocket, root, clock }: EngineOptions): StorageEngine {
  const send = (
    method: 'PATCH' | 'HEAD' | 'PUT' | 'GET',
    { socketPath, target, body = '', key }: { socketPath: string; target: string; body?: string; key: EngineKey },
  ) =>
    new Promise<Reply>((resolve, reject) => {
      const url = new URL(target, `http://${HOST}`)
      const bytes = Buffer.from(body)
      const headers = {
        ...signRequest({ method, url, body: bytes }, { ...key, region: SIGNING_REGION }, byTheMachine(clock.now())),
        host: HOST,
        'content-length': String(bytes.length),
      }
      const request = httpRequest({ socketPath, method, path: target, headers, agent: false }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
          if (text.length > ANSWER_BYTES_MAXIMUM) request.destroy(new Error('the engine says too much'))
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
        response.on('error', reject)
      })
      const cancel = clock.after(PATIENCE_MILLISECONDS, () => request.destroy(new Error('the engine does not answer')))
      request.on('close', cancel).on('error', reject).end(bytes)
    })
  const admin = async (target: string, body: string, ...accepted: readonly string[]): Promise<void> => {
    const { status, text } = await send('PATCH', { socketPath: adminSocket, target, body, key: root })
    if (status >= 300 && !accepted.some((code) => text.includes(`<Code>${code}</Code>`)))
      throw new Error(`the engine answers ${target.split('?')[0]} with ${status}: ${text.slice(0, 300)}`)
  }
  return {
    async check(key) {
      const { status, text } = await send('GET', { socketPath: s3, target: '/', key })
      if (status !== 200 || !text.includes('<ListAllMyBucketsResult'))
        throw new Error(`the engine answers a list of buckets with ${status}: ${text.slice(0, 300)}`)
    },
    async ensureUser({ accessKeyId, secretAccessKey }) {
      const role = '<Role>userplus</Role>'
      const access = `<Access>${accessKeyId}</Access><Secret>${secretAccessKey}</Secret>`
      await admin('/create-user', `<Account>${access}${role}</Account>`, 'XAdminUserExists')
      const secret = `<Secret>${secretAccessKey}</Secret>`
      await admin(`/update-user?access=${accessKeyId}`, `<MutableProps>${secret}${role}</MutableProps>`)
    },
    async ensureBucket(key, name) {
      const { status, text } = await send('PUT', { socketPath: s3, target: `/${name}`, key })
      if (status >= 300 && !text.includes('<Code>BucketAlreadyOwnedByYou</Code>'))
        throw new Error(`the engine makes no bucket ${name}: ${status}: ${text.slice(0, 300)}`)
    },
    async sizeOf(key, path) {
      const { status, headers } = await send('HEAD', { socketPath: s3, target: path, key })
      if (status === 404) return undefined
      if (status !== 200) throw new Error(`the engine answers HEAD with ${status}`)
      return Number(headers['content-length'])
    },
  }
}
