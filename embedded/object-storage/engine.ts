/** The engine: versitygw over folders of this machine, behind sockets that only this process and the engine reach. It
 *  checks signatures and keeps objects; who its users are it is told here. */
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { signRequest } from '../../kit/chunks/sign-request.ts'
import { byTheMachine, type Clock } from '../../kit/sys/clock.ts'
import type { Users } from './tenants.ts'

export interface EngineFolders {
  readonly data: string
  readonly versions: string
  /** Its users, with their secrets. */
  readonly users: string
  /** Its sockets: a short path, because theirs may have no more than 107 characters. */
  readonly sockets: string
}

export const s3Socket = ({ sockets }: Pick<EngineFolders, 'sockets'>): string => join(sockets, 's3')
const adminSocket = ({ sockets }: Pick<EngineFolders, 'sockets'>): string => join(sockets, 'admin')

export interface RootKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** Paths are absolute: it changes its folder. It caches no users: its cache knows them by texts in the memory of
 *  requests, which other requests overwrite, and then takes one user for another. */
export const engineCommand = (program: string, folders: EngineFolders): readonly string[] => [
  program,
  ...['--quiet', '--keep-alive'],
  ...['--port', s3Socket(folders)],
  ...['--admin-port', adminSocket(folders)],
  ...['--iam-dir', folders.users, '--iam-cache-disable'],
  'posix',
  ...['--versioning-dir', folders.versions],
  folders.data,
]

export const engineEnvironment = ({ accessKeyId, secretAccessKey }: RootKey): Readonly<Record<string, string>> => ({
  ROOT_ACCESS_KEY: accessKeyId,
  ROOT_SECRET_KEY: secretAccessKey,
})

export const REGION = 'us-east-1'
/** Signed into requests of this process; sockets have no names. */
const HOST = 'localhost'
const ANSWER_BYTES_MAXIMUM = 1024 * 1024
const PATIENCE_MILLISECONDS = 5_000
const POLL_MILLISECONDS = 50

export interface Engine extends Users {
  /** Resolves when it answers. Throws when it does not within some seconds. */
  whenUp(): Promise<void>
  isUp(): Promise<boolean>
  /** Size of an object, by its path and version; undefined when it is not there. */
  sizeOf(path: string): Promise<number | undefined>
}

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export function openEngine(folders: EngineFolders, root: RootKey, clock: Clock): Engine {
  const send = (method: 'PATCH' | 'HEAD' | 'PUT', socketPath: string, target: string, body = '', key = root) =>
    new Promise<Reply>((resolve, reject) => {
      const url = new URL(target, `http://${HOST}`)
      const bytes = Buffer.from(body)
      const headers = {
        ...signRequest({ method, url, body: bytes }, { ...key, region: REGION }, byTheMachine(clock.now())),
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
    const { status, text } = await send('PATCH', adminSocket(folders), target, body)
    if (status >= 300 && !accepted.some((code) => text.includes(`<Code>${code}</Code>`)))
      throw new Error(`the engine answers ${target.split('?')[0]} with ${status}: ${text.slice(0, 300)}`)
  }
  const isUp = (): Promise<boolean> =>
    Promise.all([send('HEAD', s3Socket(folders), '/'), send('PATCH', adminSocket(folders), '/list-users')]).then(
      () => true,
      () => false,
    )
  return {
    isUp,
    async whenUp() {
      const deadline = clock.monotonicMilliseconds() + PATIENCE_MILLISECONDS
      while (!(await isUp())) {
        if (clock.monotonicMilliseconds() > deadline) throw new Error('the engine does not answer')
        await clock.sleep(POLL_MILLISECONDS)
      }
    },
    async ensureUser(accessKeyId, secretAccessKey) {
      const role = '<Role>userplus</Role>'
      const access = `<Access>${accessKeyId}</Access><Secret>${secretAccessKey}</Secret>`
      await admin('/create-user', `<Account>${access}${role}</Account>`, 'XAdminUserExists')
      const secret = `<Secret>${secretAccessKey}</Secret>`
      await admin(`/update-user?access=${accessKeyId}`, `<MutableProps>${secret}${role}</MutableProps>`)
    },
    removeUser: (accessKeyId) => admin(`/delete-user?access=${accessKeyId}`, '', 'XAdminUserNotFound'),
    async ensureBucket(key, name) {
      const { status, text } = await send('PUT', s3Socket(folders), `/${name}`, '', key)
      if (status >= 300 && !text.includes('<Code>BucketAlreadyOwnedByYou</Code>'))
        throw new Error(`the engine makes no bucket ${name}: ${status}: ${text.slice(0, 300)}`)
    },
    async sizeOf(path) {
      const { status, headers } = await send('HEAD', s3Socket(folders), path)
      if (status === 404) return undefined
      if (status !== 200) throw new Error(`the engine answers HEAD with ${status}`)
      return Number(headers['content-length'])
    },
  }
}
