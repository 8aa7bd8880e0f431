/** Requests to the API of a cluster, as its administrator. */
import type { Client } from './https-client.ts'

export interface KubeApi {
  readonly url: string
  readonly client: Client
}

/** Throws unless the API says yes; `accepted` are further statuses that are good. */
export async function send(
  { url, client }: KubeApi,
  method: string,
  path: string,
  { body, type, accepted = [] }: { body?: unknown; type?: string; accepted?: readonly number[] } = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await client.send(`${url}${path}`, { method, body, ...(type === undefined ? {} : { type }) })
  if (answer.status < 300 || accepted.includes(answer.status)) return answer
  throw new Error(`${method} ${path}: status ${answer.status}: ${answer.text.slice(0, 300)}`)
}

/** By server-side apply. */
export const apply = (
  api: KubeApi,
  path: string,
  body: { readonly metadata: { readonly name: string; readonly labels?: object } },
) =>
  send(api, 'PATCH', `${path}/${body.metadata.name}?fieldManager=svccloud&force=true`, {
    body,
    type: 'application/apply-patch+yaml',
  })
