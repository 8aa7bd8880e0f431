/** The interface of the host for the platform, with a token. It also serves metrics. */
import type { IncomingMessage } from 'node:http'
import { CALLS, type CallName } from '../../integrations/control-planes/calls.ts'
import type { ControlPlanes } from '../../integrations/control-planes/control.ts'
import { textWithin } from '../../kit/http/bounded.ts'
import {
  type ControlAnswer,
  type ControlListener,
  type ControlServer,
  startControlServer,
} from '../../kit/http/control-server.ts'
import { tryJson } from '../../kit/http/json.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import { LOOPBACK } from './credentials.ts'
import { Refused } from './refused.ts'

export interface ControlServerOptions extends Omit<ControlListener, 'host' | 'certificate'> {
  /** Address and certificate (TLS) for listening to other machines; absent when only this machine has access. */
  readonly open?: { readonly host: string; readonly certificate: Certificate } | undefined
  readonly planes: ControlPlanes
}

/** Large enough for the agent of an organisation platform. */
const BODY_BYTES_MAXIMUM = 262_144

/** Listens once this resolves. */
export const startControl = ({ open, planes, ...options }: ControlServerOptions): Promise<ControlServer> =>
  startControlServer({ ...options, host: open?.host ?? LOOPBACK, certificate: open?.certificate }, (request, url) =>
    answer(planes, request, url).catch((error: unknown) => {
      if (error instanceof Refused) return { status: 409, text: JSON.stringify(error.toBody()) }
      throw error
    }),
  )

const isCall = (name: string): name is CallName => Object.hasOwn(CALLS, name)

async function answer(planes: ControlPlanes, request: IncomingMessage, { pathname }: URL): Promise<ControlAnswer> {
  const name = /^\/calls\/([A-Za-z]{1,32})$/.exec(pathname)?.[1]
  if (name === undefined || !isCall(name)) return { status: 404 }
  if (request.method !== 'POST') return { status: 405 }
  const body = await textWithin(request, BODY_BYTES_MAXIMUM)
  if (body === undefined) return { status: 413 }
  const values = CALLS[name].takes.safeParse(tryJson(body))
  if (!values.success) return { status: 400, text: values.error.message }
  // The schema of this method has validated the arguments.
  const call = planes[name] as (...args: readonly unknown[]) => Promise<unknown>
  return { status: 200, text: JSON.stringify(await call(...values.data)) ?? '' }
}
