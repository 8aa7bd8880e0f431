/** What a pod has by itself gets it into its own cluster, as far as that lets it, and nowhere else: not into the
 *  control plane of another account on the same host, the tunnels, etcd, or the kubelet that runs it. What keeps its
 *  packets from the host and from others is the network around the guest, which is not here: `test/e2e` tries that. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ociArchive } from '../../agents/node/images/oci-archive.ts'
import { readRecord } from '../../hosting/processes/record.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { baseLayer } from '../../tools/images/layers.ts'
import { isWhole, newDesired, untilState } from '../hosting/processes/hosted.ts'
import { kubectlOf } from './kubectl.ts'
import { CERTIFICATE, type PodCluster, relayTunnel, startPodCluster } from './node.ts'
import { until } from '../eventually.ts'

const IMAGE = 'docker.io/library/node:test'
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** In the pod: asks each address in turn, with the token of the pod, and says what came of it. */
const ASK = `
  const { request } = require('node:https')
  const { readFileSync } = require('node:fs')
  const token = readFileSync('${ACCOUNT}/token', 'utf8')
  const ask = ([url, isTrusting]) => new Promise((resolve) => {
    const ca = isTrusting ? undefined : readFileSync('${ACCOUNT}/ca.crt')
    const headers = { authorization: 'Bearer ' + token }
    const options = { ca, rejectUnauthorized: !isTrusting, timeout: 60_000, headers }
    const sent = request(url, options, (answer) => {
      resolve(String(answer.statusCode))
      answer.destroy()
    })
    sent.once('timeout', () => sent.destroy(new Error('silence')))
    sent.once('error', (error) => resolve(error.code ?? error.message))
    sent.end()
  })
  const all = async () => {
    for (const each of JSON.parse(process.argv[1])) console.log(await ask(each))
  }
  all()
`

let folder: string
let cluster: PodCluster
/** Of another account. */
let other: ControlPlaneState
let otherFolder: string
let relay: Server | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-isolation-'))
  cluster = await startPodCluster(folder)
  const { hosted, machine } = cluster
  const desired = newDesired({ podCidrs: [machine.podCidr], serviceCidrs: [machine.serviceCidr] })
  await hosted.host.ensure(desired)
  other = await untilState(hosted, desired.id, (state) => isWhole(state) && state.forNodes !== null)
  otherFolder = join(hosted.folder, desired.id)
  relay = await relayTunnel(other)
  const archive = join(folder, 'node.tar')
  const layers = [await baseLayer()]
  await writeFile(archive, ociArchive({ name: IMAGE, layers, config: { Env: ['PATH=/usr/local/bin:/usr/bin:/bin'] } }))
  await cluster.importImage(archive)
  const command = ['--command', '--', 'node', '-e', 'setInterval(() => {}, 1e6)']
  await kubectl('run', 'visitor', `--image=${IMAGE}`, '--image-pull-policy=Never', '--restart=Never', ...command)
  await kubectl('wait', 'pod/visitor', '--for=condition=Ready', '--timeout=280s')
}, 900_000)

afterAll(async () => {
  relay?.close()
  await cluster?.end()
  if (folder) await rm(folder, { recursive: true, force: true })
})

const kubectl = (...flags: readonly string[]) => kubectlOf(cluster)(...flags)

/** What comes of each, asked from the pod; of those that are trusted nobody looks at the certificate. */
async function fromPod(
  ...asked: readonly (readonly [url: string, isTrusting?: boolean])[]
): Promise<readonly string[]> {
  const said = await kubectl('exec', 'visitor', '--', 'node', '-e', ASK, JSON.stringify(asked))
  return said.trim().split('\n')
}
const https = (host: string, port: number | undefined, path = '/version') => `https://${host}:${port}${path}`

test('its own API answers it, and gives it what its account may have', async () => {
  const own = 'https://kubernetes.default.svc'
  const address = await kubectl('get', 'service/kubernetes', '-o', 'jsonpath={.spec.clusterIP}')
  expect(await fromPod([https(address, 443)], [https(address, 443, '/api/v1/secrets')])).toEqual(['200', '403'])
  await until(
    'its name to be known',
    () => fromPod([`${own}/version`]),
    ([said]) => said === '200',
  )
})

test('the control plane of another account is another one: its certificate, and whom it admits', async () => {
  const { hostname, port } = new URL(other.endpoint ?? '')
  const path = '/api/v1/namespaces/default/secrets'
  const [verified, trusted, secrets] = await fromPod(
    [`https://${hostname}:${port}/version`],
    [`https://${hostname}:${port}/version`, true],
    [`https://${hostname}:${port}${path}`, true],
  )
  expect([trusted, secrets]).toEqual(['401', '401'])
  expect(verified).toMatch(/CERT|SIGNATURE|unable to verify/)
})

test('tunnels admit nodes of their own cluster only', async () => {
  const { host = '', port } = other.forNodes?.tunnel ?? {}
  const own = cluster.state.forNodes?.tunnel
  for (const said of await fromPod([https(host, port), true], [https(own?.host ?? '', own?.port), true]))
    expect(said).toMatch(/ALERT|ECONNRESET|EPROTO|CERTIFICATE|socket hang up/)
  // Whoever has broken out of the pod has the certificate of the node: it is the tunnel's of another cluster that is
  // not taken in.
  const shake = (at: number | undefined) => {
    const client = `openssl s_client -ign_eof -connect ${host}:${at} -cert ${CERTIFICATE} -key ${CERTIFICATE}`
    // A server sends tickets to a client whose certificate it has taken.
    return cluster.machine.run('bash', '-c', `grep -m1 -oE 'alert|New Session Ticket' <(timeout 120 ${client} 2>&1)`)
  }
  expect(await shake(port)).toMatch(/^alert/)
  expect(await shake(own?.port)).toMatch(/^New Session Ticket/)
})

test('etcd and the programs of control planes are at no address of the machine', async () => {
  const { hostAddress } = cluster.machine
  const record = await readRecord(otherFolder)
  const [replica] = record?.replicas ?? []
  expect(replica).toBeDefined()
  for (const said of await fromPod(
    [https(hostAddress, replica?.etcdClient), true],
    [https(hostAddress, replica?.etcdPeer), true],
    [https(hostAddress, replica?.api), true],
  ))
    expect(said).toBe('ECONNREFUSED')
})

test('the kubelet of its node admits nobody, and the node sees what runs on it only', async () => {
  const kubelet = (path: string): readonly [string, boolean] => [https(cluster.machine.address, 10_250, path), true]
  expect(await fromPod(kubelet('/pods'), kubelet('/run/default/visitor/visitor'))).toEqual(['403', '403'])
  await kubectl('create', 'secret', 'generic', 'elsewhere', '--from-literal=key=value')
  const asNode = async (path: string, { endpoint, certificateAuthority }: ControlPlaneState) => {
    const authority = join(cluster.machine.folder, 'authority.crt')
    await writeFile(authority, certificateAuthority ?? '')
    const identity = ['--cacert', authority, '--cert', CERTIFICATE, '--key', CERTIFICATE]
    const quiet = ['--silent', '--output', '/dev/null', '--write-out', '%{http_code}']
    return cluster.machine.run('curl', ...quiet, ...identity, `${endpoint}${path}`)
  }
  expect(await asNode(`/api/v1/nodes/${cluster.machine.name}`, cluster.state)).toBe('200')
  expect(await asNode('/api/v1/namespaces/default/secrets/elsewhere', cluster.state)).toBe('403')
  expect(await asNode('/api/v1/nodes', other)).toBe('401')
})
