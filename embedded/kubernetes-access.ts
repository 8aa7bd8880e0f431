/** Access of components and people to the Kubernetes API: kubeconfigs of the embedded API, or the user's own
 *  kubeconfig. */
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { dirname, join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import { z } from 'zod'
import { writeDurably } from '../kit/sys/durable-file.ts'
import type { Random } from '../kit/sys/random.ts'
import { type DataFolder, StartRefused } from './kit/data-folder.ts'
import { ADMIN_USER, COMPONENT_USERS, issueKubeconfig, issueToken, nodeUser } from './kubernetes/server/credentials.ts'

export interface Access {
  readonly url: string
  /** Kubeconfig for people, with all rights. */
  readonly kubeconfig: string
  readonly caFile: string | null
  /** A bearer token for the operator listener. */
  readonly tokenFile: string | null
  /** Kubeconfigs of the components. */
  readonly apiserver: string
  readonly controllers: string
  agent(node: string): string
  /** Users that only the components have. Empty when they share the user of a person and cannot be distinguished. */
  readonly platformUsers: readonly string[]
}

/** Location of the embedded API, from its ready message. */
export interface EmbeddedServerAccess {
  readonly url: string
  /** Kubeconfig of the administrator. */
  readonly kubeconfig: string
  readonly authorityFile: string
}

/** Access to the embedded API, with a separate user for every component and every node. */
export async function embeddedAccess(
  server: EmbeddedServerAccess,
  nodes: readonly string[],
  folder: DataFolder,
  random: Random,
): Promise<Access> {
  const authority = await readFile(server.authorityFile, 'utf8')
  const fileOf = (component: string) => join(folder.access, `${component}.kubeconfig`)
  const users = [
    ...Object.entries(COMPONENT_USERS).map(([component, user]) => ({ component, ...user })),
    ...nodes.map((node) => ({ component: `agent-${node}`, ...nodeUser(node) })),
  ]
  // Sequential, because they share one file of tokens.
  for (const { component, user, groups } of users) {
    await issueKubeconfig({
      folder: folder.kubernetes,
      url: server.url,
      authority,
      user,
      groups,
      file: fileOf(component),
      random,
    })
  }
  await writeDurably(folder.operatorTokenFile, await issueToken({ folder: folder.kubernetes, ...ADMIN_USER, random }))
  return {
    url: server.url,
    kubeconfig: server.kubeconfig,
    caFile: server.authorityFile,
    tokenFile: folder.operatorTokenFile,
    apiserver: fileOf('apiserver'),
    controllers: fileOf('controllers'),
    agent: (node) => fileOf(`agent-${node}`),
    platformUsers: Object.values(COMPONENT_USERS).map(({ user }) => user),
  }
}

/** The fields of a kubeconfig that are read here; the client interprets the rest. */
interface Kubeconfig {
  readonly 'current-context'?: string
  readonly contexts?: readonly {
    readonly name: string
    readonly context?: { readonly cluster?: string; readonly user?: string }
  }[]
  readonly clusters?: readonly {
    readonly name: string
    readonly cluster?: {
      readonly server?: string
      readonly 'certificate-authority'?: string
      readonly 'certificate-authority-data'?: string
    }
  }[]
  readonly users?: readonly {
    readonly name: string
    readonly user?: Readonly<Record<string, unknown>> & { readonly token?: string }
  }[]
}

const ANSWER_MILLISECONDS = 5_000
const ANSWER_BYTES_MAXIMUM = 64 * 1024
const NotFound = z.object({ reason: z.literal('NotFound'), details: z.object({ name: z.string() }) })

/** Whether the Kubernetes API knows the kind and reports that the Node does not exist. False when the API cannot be
 *  reached or answers anything else: only a clear answer counts. */
export async function isNodeRemoved({ url, caFile, tokenFile }: Access, name: string): Promise<boolean> {
  if (tokenFile === null) return false
  const headers = { authorization: `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}` }
  const ca = caFile === null ? undefined : await readFile(caFile, 'utf8')
  const text = await new Promise<string>((resolve) => {
    const target = new URL(`/apis/svccloud.dev/v1alpha1/nodes/${name}`, url)
    const sent = request(
      target,
      { headers, ...(ca && { ca }), agent: false, timeout: ANSWER_MILLISECONDS },
      (answer) => {
        let body = ''
        answer.setEncoding('utf8')
        answer.on('data', (piece: string) => {
          body += piece
          if (body.length > ANSWER_BYTES_MAXIMUM) sent.destroy(new Error('the answer is too long'))
        })
        answer.on('end', () => resolve(answer.statusCode === 404 ? body : ''))
      },
    )
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.on('error', () => resolve('')).end()
  })
  try {
    return NotFound.parse(JSON.parse(text)).details.name === name
  } catch {
    return false
  }
}

/** Access to the user's own cluster. Every component uses the given kubeconfig, or impersonates a separate user through
 *  it if people must be distinguished from components. Throws StartRefused when the kubeconfig cannot be read. */
export async function ownAccess(
  file: string,
  { folder, hasOwnUsers }: { readonly folder: DataFolder; readonly hasOwnUsers: boolean },
): Promise<Access> {
  const path = resolve(file)
  const config =
    (await readFile(path, 'utf8')
      .then((text) => parse(text) as Kubeconfig | null) // every member of it is optional
      .catch(() => undefined)) ?? undefined
  const context = config?.contexts?.find(({ name }) => name === config['current-context'])?.context
  const cluster = config?.clusters?.find(({ name }) => name === context?.cluster)?.cluster
  const token = config?.users?.find(({ name }) => name === context?.user)?.user?.token
  if (cluster?.server === undefined)
    throw new StartRefused(`${path} is not a kubeconfig with a current context and a server.`)
  if (token !== undefined) await writeDurably(folder.operatorTokenFile, token)
  const common = {
    url: cluster.server,
    kubeconfig: path,
    caFile: await ownAuthority(cluster, path, folder),
    tokenFile: token === undefined ? null : folder.operatorTokenFile,
    agent: () => path,
  }
  if (!hasOwnUsers) return { ...common, apiserver: path, controllers: path, platformUsers: [] }
  const actAs = async (component: keyof typeof COMPONENT_USERS) => {
    const copy = join(folder.access, `${component}.kubeconfig`)
    await writeDurably(copy, stringify(actingAs(config ?? {}, COMPONENT_USERS[component].user, dirname(path))))
    return copy
  }
  return {
    ...common,
    apiserver: await actAs('apiserver'),
    controllers: await actAs('controllers'),
    platformUsers: Object.values(COMPONENT_USERS).map(({ user }) => user),
  }
}

const FILE_FIELDS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'] as const

/** The kubeconfig with all its users impersonating another user, with all rights. Relative file names still refer to
 *  the original folder. */
function actingAs(config: Kubeconfig, name: string, home: string): Kubeconfig {
  const inPlace = (fields: Readonly<Record<string, unknown>>) => ({
    ...fields,
    ...Object.fromEntries(
      FILE_FIELDS.flatMap((field) =>
        typeof fields[field] === 'string' ? [[field, resolve(home, fields[field])]] : [],
      ),
    ),
  })
  return {
    ...config,
    clusters: (config.clusters ?? []).map(({ cluster = {}, ...rest }) => ({ ...rest, cluster: inPlace(cluster) })),
    users: (config.users ?? []).map(({ user = {}, ...rest }) => ({
      ...rest,
      user: { ...inPlace(user), as: name, 'as-groups': ['system:masters'] },
    })),
  }
}

async function ownAuthority(
  cluster: { readonly 'certificate-authority'?: string; readonly 'certificate-authority-data'?: string },
  kubeconfig: string,
  folder: DataFolder,
): Promise<string | null> {
  const inline = cluster['certificate-authority-data']
  if (inline !== undefined) {
    await writeDurably(folder.authorityFile, Buffer.from(inline, 'base64').toString('utf8'))
    return folder.authorityFile
  }
  const file = cluster['certificate-authority']
  return file === undefined ? null : resolve(kubeconfig, '..', file)
}
