/** Provides the public keys for tokens of people to API servers of this machine, over TLS on the loopback address. It
 *  serves the last state from the platform for each control plane, so that tokens are accepted even while the platform
 *  is unavailable. */
import { createServer } from 'node:https'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'
import { makeCertificate } from '../../kit/sys/certificate.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'
import { DISCOVERY_PATH, type Discovery, discoveryDocument } from '../core/configuration-files.ts'
import { LOOPBACK } from '../core/credentials.ts'
import { closeNow, listen } from '../../kit/sys/listen.ts'

export interface IssuerListener {
  /** For the control plane of that id. */
  discoveryOf(id: string): Discovery
  stop(): Promise<void>
}

export interface IssuerListenerOptions {
  /** Undefined when the control plane does not accept tokens, or does not exist. */
  readonly issuerOf: (id: string) => ControlPlaneDesired['issuer'] | undefined
  readonly clock: Clock
  readonly random: Random
}

const DAYS = 3_650

/** Its certificate is created at every start, because nobody else trusts it. */
export async function openIssuerListener({ issuerOf, clock, random }: IssuerListenerOptions): Promise<IssuerListener> {
  const common = { days: DAYS, now: clock.now(), random }
  const authority = await makeCertificate({ ...common, commonName: 'svccloud-issuer-door', isAuthority: true })
  const { certificate: cert, key } = await makeCertificate({
    ...common,
    commonName: 'issuer-door',
    hosts: [LOOPBACK],
    authority,
  })
  let url = ''
  const server = createServer({ cert, key }, (request, response) => {
    const [, id = '', path] = /^\/([0-9a-f-]{36})\/(.{1,64})$/.exec(request.url ?? '') ?? []
    const issuer = issuerOf(id)
    const body =
      issuer &&
      (path === 'jwks'
        ? { keys: issuer.keys }
        : path === DISCOVERY_PATH
          ? discoveryDocument(issuer.url, `${url}/${id}/jwks`)
          : undefined)
    response.writeHead(body ? 200 : 404, { 'content-type': 'application/json' })
    response.end(body ? JSON.stringify(body) : '')
  })
  url = `https://${LOOPBACK}:${await listen(server, { host: LOOPBACK, port: 0 })}`
  return {
    discoveryOf: (id) => ({
      discoveryURL: `${url}/${id}/${DISCOVERY_PATH}`,
      certificateAuthority: authority.certificate,
    }),
    stop: () => closeNow(server),
  }
}
