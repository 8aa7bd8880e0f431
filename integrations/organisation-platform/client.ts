/** The HTTP client of the organisation platform: `PUT` and `DELETE` of `/v1/clusters/<id>` below its address, with a
 *  bearer token. */
import { z } from 'zod'
import { Unavailable } from '../../domain/problem.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { type OrganisationPlatform, PlatformRefusal, RegistrationResult } from './platform.ts'

export interface PlatformClientOptions {
  readonly url: string
  readonly token: string
  readonly clock: Clock
}

const TIMEOUT_MILLISECONDS = 10_000
const ANSWER_BYTES_MAXIMUM = 131_072
const REASON_CHARACTERS_MAXIMUM = 300
/** Statuses of a temporary failure of the platform. */
const isPassing = (status: number): boolean => status >= 500 || [408, 425, 429].includes(status)
const NOT_FOUND = 404

const WHAT = 'the organisation platform'
const Refusal = z.object({ detail: z.string() })

export function openPlatformClient({ url, token, clock }: PlatformClientOptions): OrganisationPlatform {
  const base = url.replace(/\/+$/, '')
  const send = async (method: 'PUT' | 'DELETE', id: string, body?: object) => {
    const over = new AbortController()
    const cancel = clock.after(TIMEOUT_MILLISECONDS, () => over.abort(new Error('no answer in time')))
    try {
      const response = await fetch(`${base}/v1/clusters/${encodeURIComponent(id)}`, {
        method,
        signal: over.signal,
        // A redirect would send the token to another address.
        redirect: 'error',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, value: parse(await readText(response)) }
    } catch (error) {
      throw new Unavailable(WHAT, error)
    } finally {
      cancel()
    }
  }
  return {
    async register({ id, organisationId, certificateAuthority, ...cluster }) {
      const body = { ...cluster, organisation_id: organisationId, certificate_authority: certificateAuthority }
      const { status, value } = await send('PUT', id, body)
      requireGood(status, value)
      const registered = RegistrationResult.safeParse(value)
      if (!registered.success) throw new Unavailable(WHAT, registered.error)
      return registered.data
    },
    async deregister(id) {
      const { status, value } = await send('DELETE', id)
      if (status !== NOT_FOUND) requireGood(status, value)
    },
  }
}

function requireGood(status: number, value: unknown): void {
  if (status < 300) return
  if (isPassing(status)) throw new Unavailable(WHAT, new Error(`status ${status}`))
  const refusal = Refusal.safeParse(value)
  const detail = refusal.success ? refusal.data.detail.slice(0, REASON_CHARACTERS_MAXIMUM) : `status ${status}`
  throw new PlatformRefusal(`The organisation platform refuses: ${detail}`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Throws when the text is too long. */
async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let [text, bytes] = ['', 0]
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > ANSWER_BYTES_MAXIMUM) throw new Error('the answer is too long')
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
