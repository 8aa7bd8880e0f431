/** A host of control planes with the real programs, in a separate folder. */
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ControlPlaneHost, type HostOptions, openHost } from '../../../hosting/processes/host.ts'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import type { ControlPlaneDesired, ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import type { Certificate } from '../../../kit/sys/certificate.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'

export interface Hosted {
  readonly folder: string
  readonly host: ControlPlaneHost
  /** Ends the host in order and opens another one on its folder. */
  reopen(between?: () => Promise<void>): Promise<void>
  end(): Promise<void>
}

export async function openHosted(more: Partial<HostOptions> = {}): Promise<Hosted> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-planes-'))
  const programs = await findKubernetes()
  if (programs === undefined) throw new Error('the programs of control planes are not built')
  const open = () =>
    openHost({
      folder,
      programs,
      host: '127.0.0.1',
      addresses: [],
      nodes: { address: '127.0.0.1' },
      memoryBytes: 4 * 1024 ** 3,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      ...more,
    })
  let host = await open()
  return {
    folder,
    get host() {
      return host
    },
    async reopen(between) {
      await host.stop()
      await between?.()
      host = await open()
    },
    async end() {
      await host.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const newDesired = (more: Partial<ControlPlaneDesired> = {}): ControlPlaneDesired => ({
  id: newUuid(systemRandom),
  release: '1.36.3',
  replicas: 1,
  serverNames: ['api.example.test'],
  podCidrs: ['10.244.0.0/16'],
  serviceCidrs: ['10.96.0.0/16'],
  issuer: null,
  ...more,
})

/** The state of it, once it is good for the test. */
export async function untilState(
  { host }: Hosted,
  id: string,
  isGood: (state: ControlPlaneState) => boolean,
  milliseconds?: number,
): Promise<ControlPlaneState> {
  const isThere = (state: ControlPlaneState | undefined) => state !== undefined && isGood(state)
  const state = await until('the control plane to be as expected', () => host.get(id), isThere, milliseconds)
  if (state === undefined) throw new Error('there is no state')
  return state
}

export const isWhole = ({ phase, apiServersReady, etcdMembersReady, etcdMembersTotal }: ControlPlaneState): boolean =>
  phase === 'running' && apiServersReady === etcdMembersTotal && etcdMembersReady === etcdMembersTotal

export interface KubeAnswer {
  readonly status: number
  // Whatever Kubernetes says; tests read what they look for.
  readonly body: Record<string, unknown>
}

export interface KubeClient {
  send(method: string, path: string, body?: unknown, type?: string): Promise<KubeAnswer>
}

/** Over the endpoint, a connection for each request, with a token or a certificate. */
export function kubeClient(state: ControlPlaneState, as?: string | Certificate): KubeClient {
  const { endpoint, certificateAuthority } = state
  if (endpoint === null || certificateAuthority === null) throw new Error('there is no endpoint')
  return {
    send: (method, path, body, type = 'application/json') =>
      new Promise((resolve, reject) => {
        const sent = request(
          `${endpoint}${path}`,
          {
            method,
            ca: certificateAuthority,
            agent: false,
            timeout: 15_000,
            headers: {
              'content-type': type,
              ...(typeof as === 'string' ? { authorization: `Bearer ${as}` } : {}),
            },
            ...(typeof as === 'object' ? { cert: as.certificate, key: as.key } : {}),
          },
          async (response) => {
            let text = ''
            for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
            // What API servers answer is an object, but for `ok` of their health.
            const parsed = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text }
            resolve({ status: response.statusCode ?? 0, body: parsed })
          },
        )
        sent.once('timeout', () => sent.destroy(new Error('no answer in time')))
        sent.once('error', reject)
        sent.end(body === undefined ? undefined : JSON.stringify(body))
      }),
  }
}

export async function adminOf(hosted: Hosted, id: string): Promise<KubeClient> {
  const state = await untilState(hosted, id, isWhole)
  const { token } = await hosted.host.userToken(id, 'admin', 3_600)
  return kubeClient(state, token)
}
