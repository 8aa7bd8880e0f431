/** The credential plugin that kubeconfigs name: prints a short-lived token of the service in the format of client-go
 *  (`client.authentication.k8s.io/v1`).
 *  It contains no list of cluster kinds. The OpenAPI document of the service shows which kinds have tokens, and
 *  where. */
import { z } from 'zod'
import type { Api, Members } from './api.ts'
import type { Command } from './commands.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'
import { idOf } from './names.ts'

const Token = z.object({ token: z.string().min(1), expires_at: z.iso.datetime({ offset: true }) })
const Operation = z.object({ operationId: z.string() })
const Document = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })

export interface CredentialOptions {
  readonly api: Api
  /** Resolves names to ids. */
  readonly commands: readonly Command[]
  /** A kind in the singular and an id or a name, such as `dev-cluster/ID`. */
  readonly cluster: string
  readonly signal: AbortSignal
}

/** Returns an ExecCredential. Throws a Failure when the service has no tokens for that kind of cluster, or refuses this
 *  one. */
export async function execCredential({ api, commands, cluster, signal }: CredentialOptions): Promise<Members> {
  const [, kind, name] = /^([a-z]+(?:-[a-z]+)*)\/([^/]+)$/.exec(cluster) ?? []
  if (kind === undefined || name === undefined)
    throw usageFailure('--cluster takes a kind and an id, as in dev-cluster/ID')
  const path = await tokenPath(api, kind, signal)
  const { body } = await api.send({
    method: 'GET',
    path: path.replace(/\{\w+\}/, encodeURIComponent(await idOf(api, commands, kind, name))),
    signal,
  })
  const { data } = Token.safeParse(body)
  if (data === undefined) throw new Failure(EXIT.refused, `${api.url} did not return a token for ${cluster}`)
  return {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token: data.token, expirationTimestamp: data.expires_at },
  }
}

/** The path of `get_dev_cluster_token` for `dev-cluster`, with its parameter. */
async function tokenPath(api: Api, kind: string, signal: AbortSignal): Promise<string> {
  const wanted = `get_${kind.replaceAll('-', '_')}_token`
  const { data } = Document.safeParse((await api.send({ method: 'GET', path: '/openapi.json', signal })).body)
  if (data === undefined) throw new Failure(EXIT.refused, `${api.url} does not describe its API at /openapi.json`)
  const found = Object.entries(data.paths).find(([, { get }]) => Operation.safeParse(get).data?.operationId === wanted)
  if (found === undefined)
    throw new Failure(EXIT.refused, `${api.url} has no operation ${wanted}: it provides no tokens for a ${kind}`)
  return found[0]
}
