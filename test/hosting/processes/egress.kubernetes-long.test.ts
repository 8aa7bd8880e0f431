/** Whoever has a cluster tells its API server where to connect to: nothing of the host is among it. */
import { createServer, type Server } from 'node:net'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import { adminOf, type Hosted, type KubeClient, newDesired, openHosted } from './hosted.ts'

/** Of this machine, not on its loopback, where it has one: addresses of nodes may not be on that. */
const OWN_ADDRESS =
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1'

let server: Server
let port: number
let connections: number
beforeEach(async () => {
  connections = 0
  server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => void server.close())

const opened: Hosted[] = []
let withTunnel: KubeClient
let without: KubeClient
beforeAll(async () => {
  const programs = await findKubernetes()
  if (programs === undefined) throw new Error('the programs of control planes are not built')
  const open = async (more: Parameters<typeof openHosted>[0]) => {
    const hosted = await openHosted(more)
    opened.push(hosted)
    const desired = newDesired()
    await hosted.host.ensure(desired)
    return adminOf(hosted, desired.id)
  }
  withTunnel = await open({})
  without = await open({ programs: { ...programs, tunnel: undefined } })
})
afterAll(async () => {
  for (const hosted of opened) await hosted.end()
})

const named = (name: string, more: object = {}) => ({ metadata: { name, ...more } })
const post = async (api: KubeClient, path: string, body: object) => {
  const { status } = await api.send('POST', path, body)
  expect(status, path).toBeLessThan(300)
}

/** Each makes the API server connect to the listener, if anything does. */
const TRIES: readonly (readonly [string, (api: KubeClient) => Promise<unknown>])[] = [
  [
    'the URL of a webhook',
    async (api) => {
      const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }
      const hook = {
        name: 'hook.example.test',
        rules: [rule],
        failurePolicy: 'Fail',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        timeoutSeconds: 5,
        clientConfig: { url: `https://127.0.0.1:${port}/` },
      }
      const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
      await post(api, path, { ...named('hook'), webhooks: [hook] })
      try {
        for (let tries = 0; tries < 20; tries++) {
          const { status } = await api.send('POST', '/api/v1/namespaces/default/configmaps', named(`try-${tries}`))
          if (status === 500) return // it has been called
        }
        throw new Error('the webhook was not called')
      } finally {
        await api.send('DELETE', `${path}/hook`)
      }
    },
  ],
  [
    'the address of a node',
    async (api) => {
      await post(api, '/api/v1/nodes', named('false'))
      const status = {
        addresses: [{ type: 'InternalIP', address: OWN_ADDRESS }],
        daemonEndpoints: { kubeletEndpoint: { Port: port } },
      }
      await api.send('PATCH', '/api/v1/nodes/false/status', { status }, 'application/merge-patch+json')
      expect((await api.send('GET', '/api/v1/nodes/false/proxy/')).status).toBeGreaterThanOrEqual(500)
    },
  ],
]

test.each(TRIES)('%s reaches nothing of the host', async (_what, attempt) => {
  for (const api of [withTunnel, without]) await attempt(api)
  expect(connections).toBe(0)
})
