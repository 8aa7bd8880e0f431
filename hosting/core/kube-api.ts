/** Requests to the API of a cluster, as its administrator. */
import { z } from 'zod'
import { TooLong } from '../../kit/http/bounded.ts'
import type { Client, RequestOptions } from './https-client.ts'

export interface KubeApi {
  readonly url: string
  readonly client: Client
}

interface SendOptions extends Pick<RequestOptions, 'body' | 'type' | 'answerBytesMaximum' | 'timeoutMilliseconds'> {
  readonly accepted?: readonly number[]
}

/** Throws unless the status is a success or one of `accepted`. */
export async function send(
  { url, client }: KubeApi,
  method: string,
  path: string,
  { body, accepted = [], ...options }: SendOptions = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await client.send(`${url}${path}`, { method, body, ...options })
  if (answer.status < 300 || accepted.includes(answer.status)) return answer
  throw new Error(`${method} ${path}: status ${answer.status}: ${answer.text.slice(0, 300)}`)
}

/** Uses server-side apply. */
export const apply = (
  api: KubeApi,
  path: string,
  body: { readonly metadata: { readonly name: string; readonly labels?: object }; readonly [field: string]: unknown },
) =>
  send(api, 'PATCH', `${path}/${body.metadata.name}?fieldManager=svccloud&force=true`, {
    body,
    type: 'application/apply-patch+yaml',
  })

const PAGE = 500
/** Limit of one page. A parsed page takes several times its size. */
const PAGE_BYTES_MAXIMUM = 8 * 1024 ** 2
/** Limit of a complete list. Tenants control what their clusters contain, and one process may read all clusters of a
 *  host. */
const LIST_BYTES_MAXIMUM = 48 * 1024 ** 2

const Continued = z.object({ metadata: z.object({ continue: z.string().default('') }).prefault({}) })

/** All items of a list, read in pages of maximum length. Throws TooLong for a list, or a single object, above the
 *  limits. */
export async function listAll<Item>(
  api: KubeApi,
  path: string,
  item: z.ZodType<Item>,
  maximum: number,
): Promise<readonly Item[]> {
  const Page = Continued.extend({ items: z.array(item) })
  const found: Item[] = []
  let [next, limit, bytes] = ['', PAGE, 0]
  for (;;) {
    const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
    const at = `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${more}`
    const answer = await send(api, 'GET', at, { answerBytesMaximum: PAGE_BYTES_MAXIMUM }).catch((error: unknown) => {
      if (error instanceof TooLong && limit > 1) return undefined
      throw error
    })
    if (answer === undefined) {
      limit = Math.ceil(limit / 8)
      continue
    }
    bytes += answer.text.length
    if (bytes > LIST_BYTES_MAXIMUM) throw new Error(`${path}: more than ${LIST_BYTES_MAXIMUM} bytes`)
    const page = Page.parse(JSON.parse(answer.text))
    found.push(...page.items)
    if (found.length > maximum) throw new Error(`${path}: more than ${maximum}`)
    if (page.metadata.continue === '') return found
    next = page.metadata.continue
  }
}
