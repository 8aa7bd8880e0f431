/** The address of the API server and our identity there: from a kubeconfig file, or the ServiceAccount of the pod that
 *  we run in. Tokens and certificates are read here; credentials from plugins (exec, auth providers) come from
 *  client-node, which is loaded only then. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { defined } from '../../domain/defined.ts'
import type { Clock } from '../sys/clock.ts'
import { readPemFile } from '../sys/secret-file.ts'
import type { ServerAccess } from './https-transport.ts'

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** How often the file is read again. Projected tokens are replaced long before they expire. */
const TOKEN_FRESH_MILLISECONDS = 10_000

const optional = z.string().optional()
const KubeconfigFile = z.object({
  'current-context': optional,
  clusters: z
    .array(
      z.object({
        name: z.string(),
        cluster: z.object({
          server: z.string(),
          'certificate-authority': optional,
          'certificate-authority-data': optional,
          'insecure-skip-tls-verify': z.boolean().optional(),
          'tls-server-name': optional,
        }),
      }),
    )
    .nullish(),
  users: z
    .array(
      z.object({
        name: z.string(),
        user: z.looseObject({
          token: optional,
          tokenFile: optional,
          username: optional,
          password: optional,
          'client-certificate': optional,
          'client-certificate-data': optional,
          'client-key': optional,
          'client-key-data': optional,
          as: optional,
          'as-groups': z.array(z.string()).optional(),
        }),
      }),
    )
    .nullish(),
  contexts: z
    .array(
      z.object({ name: z.string(), context: z.object({ cluster: z.string(), user: z.string(), namespace: optional }) }),
    )
    .nullish(),
})

/** The current context of a kubeconfig. Paths in it are relative to the file, as kubectl reads them. Throws with one
 *  clear line when the file cannot be read or names something that it does not contain. */
export async function readKubeconfig(file: string, clock: Clock): Promise<ServerAccess> {
  const content = KubeconfigFile.parse(parse(await readFile(file, 'utf8')))
  const named = <T extends { readonly name: string }>(
    what: string,
    items: readonly T[] | null | undefined,
    name: string | undefined,
  ): T => {
    const found = items?.find((item) => item.name === name)
    if (found === undefined) throw new Error(`kubeconfig ${file} has no ${what} ${JSON.stringify(name ?? '')}`)
    return found
  }
  const { context } = named('context', content.contexts, content['current-context'])
  const { cluster } = named('cluster', content.clusters, context.cluster)
  const { user } = named('user', content.users, context.user)
  const path = (name: string) => resolve(dirname(file), name)
  const pem = async (data: string | undefined, name: string | undefined) =>
    data !== undefined
      ? Buffer.from(data, 'base64').toString('utf8')
      : name !== undefined
        ? await readPemFile(path(name))
        : undefined

  const ca = await pem(cluster['certificate-authority-data'], cluster['certificate-authority'])
  const server = {
    url: cluster.server.replace(/\/+$/, ''),
    ...defined({ ca, serverName: cluster['tls-server-name'] }),
    ...(cluster['insecure-skip-tls-verify'] === true && { isVerificationSkipped: true }),
    ...(user.as !== undefined && { actsAs: { user: user.as, groups: user['as-groups'] ?? [] } }),
  }
  if ('exec' in user || 'auth-provider' in user) return { ...server, ...(await pluginAccess(file)) }

  const certificate = await pem(user['client-certificate-data'], user['client-certificate'])
  const key = await pem(user['client-key-data'], user['client-key'])
  const authorization =
    user.token !== undefined
      ? fixed(`Bearer ${user.token}`)
      : user.tokenFile !== undefined
        ? tokenFrom(path(user.tokenFile), clock)
        : user.username !== undefined
          ? fixed(`Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}`)
          : undefined
  return {
    ...server,
    ...defined({ certificate, key }),
    ...(authorization && { authorization }),
  }
}

/** The API server from within a pod; undefined outside a cluster. */
export async function readServiceAccount(
  environment: Readonly<Record<string, string | undefined>>,
  clock: Clock,
): Promise<ServerAccess | undefined> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment
  if (host === undefined || port === undefined) return undefined
  const address = host.includes(':') ? `[${host}]` : host
  return {
    url: `https://${address}:${port}`,
    ca: await readPemFile(`${SERVICE_ACCOUNT_FOLDER}/ca.crt`),
    authorization: tokenFrom(`${SERVICE_ACCOUNT_FOLDER}/token`, clock),
  }
}

const fixed = (header: string) => async () => header

function tokenFrom(file: string, clock: Clock): () => Promise<string> {
  let known: { readonly header: string; readonly until: number } | undefined
  return async () => {
    const now = clock.monotonicMilliseconds()
    if (known === undefined || now >= known.until)
      known = { header: `Bearer ${(await readFile(file, 'utf8')).trim()}`, until: now + TOKEN_FRESH_MILLISECONDS }
    return known.header
  }
}

/** client-node runs the plugin and caches its answer until it expires. */
async function pluginAccess(file: string): Promise<Pick<ServerAccess, 'authorization' | 'certificate' | 'key'>> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  config.loadFromFile(file)
  const ask = async () => {
    const options: { headers?: Record<string, unknown>; cert?: unknown; key?: unknown } = { headers: {} }
    // it fills in the plugin's credentials
    await config.applyToHTTPSOptions(options as Parameters<typeof config.applyToHTTPSOptions>[0])
    return options
  }
  const text = (value: unknown) => (value === undefined ? undefined : String(value))
  const first = await ask()
  const [certificate, key] = [text(first.cert), text(first.key)]
  return {
    authorization: async () => text((await ask()).headers?.['Authorization']),
    ...defined({ certificate, key }),
  }
}
