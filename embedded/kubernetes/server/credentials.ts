/** Bearer tokens of people and components, in one file of the data folder, and kubeconfigs with these tokens. Anybody
 *  who may write to the folder can issue and revoke tokens: the server reads the file again when it has changed. */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { writeDurably } from '../../../kit/sys/durable-file.ts'
import { newBase62, newUuid, type Random } from '../../../kit/sys/random.ts'
import type { User } from '../core/object.ts'

const TOKEN_LETTERS = 48
const TOKEN_FILE = 'tokens.json'

interface Credential {
  readonly token: string
  readonly user: string
  readonly uid: string
  readonly groups: readonly string[]
}

export interface Issuing {
  /** The server's data folder. */
  readonly folder: string
  readonly url: string
  /** PEM of the server's authority. */
  readonly authority: string
  readonly user: string
  readonly groups: readonly string[]
  /** Path of the kubeconfig, with mode 0600. */
  readonly file: string
  readonly random: Random
}

/** The users of this product's own components. */
export const COMPONENT_USERS = {
  apiserver: { user: 'system:svccloud:apiserver', groups: ['svccloud:components'] },
  controllers: { user: 'system:svccloud:controllers', groups: ['svccloud:components'] },
} as const
export const nodeUser = (node: string): { readonly user: string; readonly groups: readonly string[] } => ({
  user: `system:node-agent:${node}`,
  groups: ['svccloud:nodes'],
})
export const ADMIN_USER = { user: 'svccloud-admin', groups: ['system:masters'] } as const

/** Writes a kubeconfig for the user; the same user always has the same token. Returns the token. */
export async function issueKubeconfig({
  folder,
  url,
  authority,
  user,
  groups,
  file,
  random,
}: Issuing): Promise<string> {
  const token = await issueToken({ folder, user, groups, random })
  await writeDurably(file, kubeconfig({ url, authority, user, token }))
  return token
}

/** The token of the user; created and stored if there is none with these groups. Only one process at a time may issue.
 */
export async function issueToken({
  folder,
  user,
  groups,
  random,
}: Pick<Issuing, 'folder' | 'user' | 'groups' | 'random'>): Promise<string> {
  const path = join(folder, TOKEN_FILE)
  const credentials = parse(await readFile(path, 'utf8').catch(() => '[]'))
  const known = credentials.find((credential) => credential.user === user)
  if (known && known.groups.join() === groups.join()) return known.token
  const issued: Credential = {
    token: known?.token ?? newBase62(random, TOKEN_LETTERS),
    user,
    uid: known?.uid ?? newUuid(random),
    groups,
  }
  await writeDurably(
    path,
    `${JSON.stringify([...credentials.filter((credential) => credential !== known), issued], null, 2)}\n`,
  )
  return issued.token
}

// Only issueToken writes the file, and always completely.
const parse = (text: string): Credential[] => JSON.parse(text) as Credential[]

export function kubeconfig({
  url,
  authority,
  user,
  token,
}: {
  readonly url: string
  readonly authority: string
  readonly user: string
  readonly token: string
}): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'svccloud',
        cluster: { server: url, 'certificate-authority-data': Buffer.from(authority).toString('base64') },
      },
    ],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: 'svccloud', context: { cluster: 'svccloud', user, namespace: 'default' } }],
    'current-context': 'svccloud',
  })
}

/** Finds the user of a token; undefined when nobody has the token. */
export type Authenticate = (token: string) => User | undefined

/** Reads the file again when it has changed, so that users can change without a restart. */
export function tokenFile(folder: string): Authenticate {
  const path = join(folder, TOKEN_FILE)
  let users = new Map<string, User>()
  let readAt = -1
  const reload = () => {
    const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (changedAt === readAt) return
    users = new Map(
      parse(readFileSync(path, 'utf8')).map(({ token, user, uid, groups }) => [
        digest(token).toString('hex'),
        { name: user, uid, groups: [...groups, 'system:authenticated'] },
      ]),
    )
    readAt = changedAt
  }
  return (token) => {
    reload()
    return users.get(digest(token).toString('hex')) // by digest, so that timing reveals nothing about the token
  }
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

const KEY_BYTES = 32

/** The key that signs the tokens of service accounts, created once. */
export async function tokenKeyOf(folder: string, random: Random): Promise<Buffer> {
  const path = join(folder, 'service-account.key')
  const known = await readFile(path, 'utf8').catch(() => '')
  if (known !== '') return Buffer.from(known, 'base64')
  const key = random.bytes(KEY_BYTES)
  await writeDurably(path, key.toString('base64'))
  return key
}
