/** The platform's side of a host of control planes, over HTTP. */
import { Agent, fetch } from 'undici'
import { defined } from '../../domain/defined.ts'
import { type Problem, conflict, notFound, Unavailable, unavailable } from '../../domain/problem.ts'
import { NOTHING, readText } from '../../kit/http/bounded.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { CALLS, type CallName, CallRefusal } from './calls.ts'
import type { ControlPlanes } from './control.ts'

export interface ControlPlaneClientOptions {
  readonly url: string
  readonly token: string
  /** PEM of the authority of the host's certificate; undefined for a publicly trusted authority, or without TLS. */
  readonly authority?: string | undefined
  /** Name in that certificate, if it is not the host of the URL. */
  readonly serverName?: string
  readonly clock: Clock
}

const TIMEOUT_MILLISECONDS = 15_000
const REFUSED = 409
/** Limit of a host's answer about all nodes and pods of a cluster, whose size the cluster's owner determines. */
const ANSWER_BYTES_MAXIMUM = 64 * 1024 ** 2

/** Each call throws Unavailable when the host does not answer, and a Problem for what it refuses. */
export function openControlPlanesClient({
  url,
  token,
  authority,
  serverName,
  clock,
}: ControlPlaneClientOptions): ControlPlanes {
  const dispatcher = new Agent({
    connect: defined({ ca: authority, servername: serverName }),
  })
  const send = async (name: CallName, values: readonly unknown[]) => {
    const over = new AbortController()
    const cancel = clock.after(TIMEOUT_MILLISECONDS, () => over.abort(new Error('no answer in time')))
    try {
      const response = await fetch(new URL(`/calls/${name}`, url), {
        method: 'POST',
        dispatcher,
        signal: over.signal,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(values),
      })
      const text = await readText(response.body ?? NOTHING, ANSWER_BYTES_MAXIMUM)
      if (!response.ok && response.status !== REFUSED)
        throw new Error(`${name}: status ${response.status}: ${text.slice(0, 500)}`)
      return { isRefused: response.status === REFUSED, value: text === '' ? undefined : JSON.parse(text) }
    } catch (error) {
      throw new Unavailable('the host of control planes', error)
    } finally {
      cancel()
    }
  }
  const call = async (name: CallName, values: readonly unknown[]): Promise<unknown> => {
    const { isRefused, value } = await send(name, values)
    if (isRefused) throw problemOf(CallRefusal.parse(value))
    return CALLS[name].answers.parse(value)
  }
  const names = Object.keys(CALLS) as readonly CallName[] // the keys of a literal table
  const methods = names.map((name) => [name, (...values: readonly unknown[]) => call(name, values)])
  // Each method has parsed its response by the row of its name.
  return Object.fromEntries(methods) as ControlPlanes
}

function problemOf({ reason, detail }: CallRefusal): Problem | Unavailable {
  if (reason === 'gone') return new Unavailable(detail)
  if (reason === 'not_found') return notFound(detail)
  return reason === 'no_capacity' ? unavailable(reason, detail) : conflict(reason, detail)
}
