/** What the checks of balancers rely on, by the real kube-proxy of a node in a network namespace: which node ports take
 *  connections when pods are on this node, on another one, or on none. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runProgram } from '../../../agents/node/run-program.ts'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import { nodeBinary } from '../../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { toolsFolder } from '../../../kit/sys/tools-folder.ts'
import { buildTool, canHave } from '../../../tools/cluster/build.ts'
import {
  adminOf,
  type Hosted,
  isWhole,
  type KubeClient,
  newDesired,
  openHosted,
  untilState,
} from '../../hosting/processes/hosted.ts'
import { until } from '../../eventually.ts'

const SPACE = `cloud-${newUuid(systemRandom).slice(0, 6)}`
const LINK = `c-${SPACE.slice(-6)}`
const [BALANCER, NODE, POD] = ['10.99.0.254', '10.99.0.1', '10.244.0.5']
const [POD_PORT, API_PORT] = [8080, 7443]
/** Where kube-proxy is not built yet. */
const BUILD_MILLISECONDS = 600_000
const SERVICES = '/api/v1/namespaces/default/services'
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'

let hosted: Hosted
let admin: KubeClient
let door: Server
const children: ChildProcess[] = []

const inside = (...command: readonly string[]) =>
  children.push(spawn('ip', ['netns', 'exec', SPACE, ...command], { stdio: 'ignore' }))

async function begin(): Promise<void> {
  await buildTool('kube-proxy')
  await runProgram('ip', ['netns', 'add', SPACE])
  await runProgram('ip', ['link', 'add', LINK, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', SPACE])
  await runProgram('ip', ['addr', 'add', `${BALANCER}/24`, 'dev', LINK])
  await runProgram('ip', ['link', 'set', LINK, 'up'])
  for (const command of [
    `addr add ${NODE}/24 dev eth0`,
    'link set eth0 up',
    'link set lo up',
    `addr add ${POD}/32 dev lo`,
    `route add default via ${BALANCER}`,
  ])
    await runProgram('ip', ['-n', SPACE, ...command.split(' ')])
  inside(nodeBinary(), '-e', `require('net').createServer((socket) => socket.end()).listen(${POD_PORT}, '${POD}')`)
  hosted = await openHosted()
  const desired = newDesired()
  await hosted.host.ensure(desired)
  admin = await adminOf(hosted, desired.id)
  for (const [name, address] of [
    ['here', NODE],
    ['elsewhere', '10.99.0.2'],
  ]) {
    await admin.send('POST', '/api/v1/nodes', { metadata: { name } })
    const status = { addresses: [{ type: 'InternalIP', address }] }
    await admin.send('PATCH', `/api/v1/nodes/${name}/status`, { status }, 'application/merge-patch+json')
  }
  await startProxy(desired.id, desired.release)
}

/** As nodes have it: by nftables, with the API of the cluster where the node reaches it. */
async function startProxy(id: string, release: string): Promise<void> {
  const { endpoint, certificateAuthority } = await untilState(hosted, id, isWhole)
  const port = Number(new URL(endpoint ?? '').port)
  door = createServer((node) => {
    const api = connect(port, '127.0.0.1')
    for (const socket of [node, api]) socket.on('error', () => void [node, api].map((each) => each.destroy()))
    node.pipe(api).pipe(node)
  })
  await new Promise<void>((resolve) => door.listen(API_PORT, BALANCER, resolve))
  const { token } = await hosted.host.userToken(id, 'admin', 3_600)
  const authority = Buffer.from(certificateAuthority ?? '').toString('base64')
  const server = { server: `https://${BALANCER}:${API_PORT}`, 'tls-server-name': '127.0.0.1' }
  const kubeconfig = join(hosted.folder, 'proxy.kubeconfig')
  const own = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'own',
    clusters: [{ name: 'own', cluster: { ...server, 'certificate-authority-data': authority } }],
    users: [{ name: 'own', user: { token } }],
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
  }
  await writeFile(kubeconfig, JSON.stringify(own), { mode: 0o600 })
  const configuration = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clusterCIDR: '10.244.0.0/16',
    hostnameOverride: 'here',
    clientConnection: { kubeconfig },
    conntrack: { maxPerCore: 0, min: 0 },
  }
  const file = join(hosted.folder, 'proxy.json')
  await writeFile(file, JSON.stringify(configuration))
  inside(join(toolsFolder(), `v${release}`, 'kube-proxy'), `--config=${file}`)
}

async function end(): Promise<void> {
  for (const child of children) child.kill('SIGKILL')
  door?.close()
  await hosted?.end()
  await runProgram('ip', ['netns', 'del', SPACE])
  await runProgram('ip', ['link', 'del', LINK]).catch(() => undefined) // it went with the namespace
}

/** A service with a pod on that node, or without any; answers its node port. */
async function serve(name: string, externalTrafficPolicy: 'Cluster' | 'Local', nodeName?: string): Promise<number> {
  const spec = { type: 'LoadBalancer', externalTrafficPolicy, ports: [{ port: 80, targetPort: POD_PORT }] }
  const { body } = await admin.send('POST', SERVICES, { metadata: { name }, spec })
  const { ports } = body['spec'] as { ports: { nodePort: number }[] }
  if (nodeName !== undefined)
    await admin.send('POST', SLICES, {
      metadata: { name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [POD], conditions: { ready: true }, nodeName }],
      ports: [{ port: POD_PORT, protocol: 'TCP', name: '' }],
    })
  return ports[0]?.nodePort ?? 0
}

/** What a check of two seconds finds. */
const check = (port: number): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ host: NODE, port })
    const found = (what: string) => {
      socket.destroy()
      resolve(what)
    }
    socket.setTimeout(2_000, () => found('nothing'))
    socket.once('connect', () => found('taken'))
    socket.once('error', (error: NodeJS.ErrnoException) => found(error.code ?? 'an error'))
  })

const isAble = (await findKubernetes()) !== undefined && (await canHave(['kube-proxy']))

describe.runIf(isAble)('node ports', () => {
  beforeAll(begin, BUILD_MILLISECONDS)
  afterAll(end, 60_000)

  test('of traffic policy Local take connections on nodes with pods only', async () => {
    const [local, other, cluster, empty] = [
      await serve('local', 'Local', 'here'),
      await serve('other', 'Local', 'elsewhere'),
      await serve('cluster', 'Cluster', 'elsewhere'),
      await serve('empty', 'Local'),
    ]
    for (const port of [local, cluster])
      await until(
        'the proxy',
        () => check(port),
        (found) => found === 'taken',
      )
    expect([await check(other), await check(empty)]).toEqual(['nothing', 'ECONNREFUSED'])
  })
})
