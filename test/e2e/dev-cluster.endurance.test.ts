/** A dev cluster on its real server: it runs when its node does, and what was stored in it outlives pods and a restart.
 *  It takes the image of dev clusters, in the folder that SVCCLOUD_IMAGE_CACHE names, and many minutes where guests are
 *  emulated. The tests build on each other. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Schemas, unwrap, waitForOperation } from '../../client/index.ts'
import { DEV_CLUSTER_TEMPLATE } from '../../domain/managed-machine/rules.ts'
import {
  answerOf,
  application,
  apply,
  type Cloud,
  came,
  hasImage,
  type Kubectl,
  kubectlIn,
  MINUTES,
  startCloud,
  ZONE,
} from './cluster-of-guests.ts'
import { clearAway } from './product.ts'

const HOST = 'web.example.com'
const isThere = await hasImage(DEV_CLUSTER_TEMPLATE)
const title = isThere ? 'a dev cluster' : 'a dev cluster (SVCCLOUD_IMAGE_CACHE names no image of it as it is now)'

describe.skipIf(!isThere)(title, () => {
  let cloud: Cloud
  let kubectl: Kubectl
  let cluster: Schemas['DevCluster']
  /** What its node said of itself each time before the cluster was said to run. */
  const early: string[] = []

  const read = async () => {
    const params = { path: { id: cluster.id } }
    return (await unwrap(cloud.client.GET('/v1/dev-clusters/{id}', { params }))).dev_cluster
  }
  const inPod: Kubectl = (...words) => kubectl('exec', 'deployment/web', '--', ...words)
  const rolledOut = () => kubectl('rollout', 'status', 'deployment/web', '--timeout=900s')

  beforeAll(async () => {
    cloud = await startCloud('dev@example.com')
    const { client, data } = cloud
    const asked = { zone: ZONE, name: 'play', plan: 'starter-2c-4g', public_ipv4: true }
    const made = await came(
      'dev clusters to be offered',
      () => client.POST('/v1/dev-clusters', { body: asked }),
      ({ response }) => response.status === 201 || response.status === 202,
      3,
    )
    cluster = (await unwrap(Promise.resolve(made))).dev_cluster
    cluster = await came(
      'it to run',
      async () => {
        const now = await read()
        if (now.state !== 'running') early.push(`${now.health.api_server} ${now.health.node_ready}`)
        return now
      },
      ({ state }) => state === 'running' || state === 'error',
      35,
    )
    const params = { path: { id: cluster.id } }
    const { kubeconfig } = await unwrap(client.GET('/v1/dev-clusters/{id}/kubeconfig', { params }))
    kubectl = await kubectlIn(data, 'play', kubeconfig)
  }, 45 * MINUTES)

  afterAll(async () => {
    if (cloud !== undefined) await clearAway(cloud.product, cloud.data)
  }, 2 * MINUTES)

  test('it runs once its node is ready, and not before', async () => {
    expect(cluster).toMatchObject({ state: 'running', failure_reason: null })
    expect(cluster.health).toMatchObject({ api_server: 'healthy', node_ready: true, detail: '' })
    expect(await kubectl('get', 'nodes', '--no-headers')).toMatch(/^play +Ready /)
    expect(new Set(early)).not.toContain('healthy true')
  })

  test('its API answers at both endpoints', async () => {
    const { endpoint, endpoint_ipv4 } = await read()
    expect(endpoint).toBe(`https://[${cluster.ipv6_address}]:6443`)
    expect(endpoint_ipv4).toBe(`https://${cluster.ipv4_address}:6443`)
    for (const server of [endpoint ?? '', endpoint_ipv4 ?? ''])
      expect(await kubectl('--server', server, 'get', '--raw', '/readyz')).toBe('ok')
  })

  test(
    'its ingress answers for what runs there, at both addresses',
    async () => {
      await apply(kubectl, cloud.data, [...application('ClusterIP'), INGRESS])
      await rolledOut()
      for (const address of [cluster.ipv4_address, cluster.ipv6_address])
        await came(
          `an answer at ${address}`,
          () => answerOf(address ?? '', { host: HOST }),
          (said) => said === 'hello\n200',
          5,
        )
      expect(await answerOf(cluster.ipv4_address ?? '', { host: 'other.example.com' })).toMatch(/404$/)
    },
    25 * MINUTES,
  )

  test(
    'a claim outlives its pod',
    async () => {
      await inPod('sh', '-c', 'echo kept > /data/file && sync')
      await kubectl('delete', 'pod', '-l', 'app=web')
      await rolledOut()
      expect(await inPod('cat', '/data/file')).toBe('kept\n')
    },
    20 * MINUTES,
  )

  test(
    'a claim outlives a restart of the server, and everything comes back by itself',
    async () => {
      const bootOf = () => kubectl('get', 'node', 'play', '-o', 'jsonpath={.status.nodeInfo.bootID}')
      const before = await bootOf()
      const params = { path: { id: cluster.server_id ?? '' } }
      const { operation } = await unwrap(cloud.client.POST('/v1/servers/{id}/restart', { params }))
      await waitForOperation(cloud.client, operation.id)
      await came(
        'another boot',
        () => bootOf().catch(() => before),
        (now) => now !== before,
        30,
      )
      await came(
        'its node',
        read,
        ({ state, health }) => state === 'running' && health.api_server === 'healthy' && health.node_ready,
        15,
      )
      await came(
        'an answer',
        () => answerOf(cluster.ipv4_address ?? '', { host: HOST }).catch(() => ''),
        (said) => said === 'hello\n200',
        15,
      )
      expect(await inPod('cat', '/data/file')).toBe('kept\n')
    },
    70 * MINUTES,
  )

  test(
    'its deletion leaves nothing',
    async () => {
      await unwrap(cloud.client.DELETE('/v1/dev-clusters/{id}', { params: { path: { id: cluster.id } } }))
      await came(
        'the end of all of it',
        () => cloud.product.leftovers(),
        (left) => left.length === 0,
        5,
      )
    },
    10 * MINUTES,
  )
})

const INGRESS = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'web' },
  spec: {
    rules: [
      {
        host: HOST,
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      },
    ],
  },
}
