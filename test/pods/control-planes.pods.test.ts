/** A control plane in pods that really run: etcd, an API server, the tunnel and controllers, on a node of a host
 *  cluster of the product, behind network policies that are enforced; the host process is the real one. */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ociArchive } from '../../agents/node/images/oci-archive.ts'
import { probePort } from '../../embedded/kit/ports.ts'
import { namespaceOf } from '../../hosting/pods/names.ts'
import { openControlPlanesClient } from '../../integrations/control-planes/client.ts'
import type {
  ControlPlaneDesired,
  ControlPlanes,
  ControlPlaneState,
} from '../../integrations/control-planes/control.ts'
import { makeCertificate } from '../../kit/sys/certificate.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { environment, printLine } from '../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { builtReleases, controlPlaneImages, writeControlPlaneImages } from '../../tools/images/control-planes.ts'
import { readStage } from '../../tools/images/dockerfile.ts'
import { baseLayer, dependenciesLayer, sourcesLayer } from '../../tools/images/layers.ts'
import { isWhole, type KubeClient, kubeClient, newDesired } from '../hosting/processes/hosted.ts'
import { ISSUER_URL, openIssuer } from '../hosting/processes/issuer.ts'
import { until } from '../eventually.ts'
import { startHostileS3 } from '../kit/chunks/hostile-s3.ts'
import { startKubectl, startWriter } from './api-writer.ts'
import { kubectlOf } from './kubectl.ts'
import { type Machine, startMachine } from './machine.ts'
import { joinNode, type PodCluster, relay, startPodCluster } from './node.ts'
import { makeVolumes } from './release.ts'

const ROOT = join(import.meta.dirname, '../..')
const START_MILLISECONDS = 900_000 // the first time, the tools are built
const READY_MILLISECONDS = 240_000
const VOLUMES = 2
const NEWEST = '1.36.3'
/** Tries of one client that an API server which ends may answer with when to try again. */
const REFUSED_MAXIMUM = 5
/** Exit codes of curl: the handshake failed, or its alert came while the request was sent, or behind it. */
const TLS_FAILURES = [35, 55, 56]
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'

let folder: string
let cluster: PodCluster
/** Of the customer: a kubelet with containerd that stands in for the guest. */
let node: Machine
let relays: readonly Server[] = []
let host: ChildProcess
let control: ControlPlanes
let settings: Readonly<Record<string, string>>
let desired: ControlPlaneDesired
let issuer: Awaited<ReturnType<typeof openIssuer>>
/** The minor before takes minutes to build: where it is not, only what needs it stays out. */
const releases = await builtReleases()

const kubectl = (...flags: readonly string[]) => kubectlOf(cluster)(...flags)

/** Node, the packages, and of the sources those of hosts. */
async function writePlatformImage(name: string): Promise<string> {
  const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8')
  const stage = {
    ...readStage(dockerfile, 'control-plane'),
    copies: ['package.json', 'kit', 'integrations', 'domain', 'hosting'],
  }
  const file = join(folder, 'platform.tar')
  const dependencies = await dependenciesLayer(readStage(dockerfile, 'runtime'))
  const layers = [await baseLayer(), dependencies, await sourcesLayer(stage)]
  await writeFile(file, ociArchive({ name, layers, config: stage.config }))
  return file
}

async function startHost(): Promise<void> {
  host = fork(join(ROOT, 'hosting/pods/main.ts'), [], {
    env: { ...environment(), ...settings },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await new Promise((resolve, reject) => host.once('message', resolve).once('exit', reject))
}

/** As the chart configures it. */
async function prepareHost(platform: string): Promise<void> {
  const { address, hostAddress } = cluster.machine
  const common = { days: 2, now: new Date(), random: systemRandom }
  const authority = await makeCertificate({ ...common, commonName: 'host', isAuthority: true })
  const leaf = await makeCertificate({ ...common, commonName: 'host', hosts: ['127.0.0.1'], authority })
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const port = await probePort('127.0.0.1', 0)
  const images = { ...controlPlaneImages(releases), platform }
  settings = {
    SVCCLOUD_DATA: join(folder, 'host'),
    SVCCLOUD_KUBECONFIG: cluster.kubeconfigFile,
    SVCCLOUD_HOST_CLUSTER_FILE: await write(
      'host-cluster.yaml',
      JSON.stringify({
        images,
        snapshotKinds: await readFile(await buildTool('snapshot-kinds'), 'utf8'),
        storage: { className: 'planes', mebibytesOfOne: 1_024, mebibytes: VOLUMES * 1_024 },
        endpoint: { type: 'NodePort', address },
        from: [{ ipBlock: { cidr: `${hostAddress}/32` } }],
      }),
    ),
    SVCCLOUD_HOST: '127.0.0.1',
    SVCCLOUD_CONTROL_PORT: String(port),
    SVCCLOUD_TOKEN_FILE: await write('token', 'a token of the platform'),
    SVCCLOUD_CERTIFICATE_FILE: await write('host.crt', leaf.certificate),
    SVCCLOUD_KEY_FILE: await write('host.key', leaf.key),
    SVCCLOUD_LOG_LEVEL: 'warn',
  }
  await mkdir(settings['SVCCLOUD_DATA'] ?? '', { recursive: true })
  control = openControlPlanesClient({
    url: `https://127.0.0.1:${port}`,
    token: 'a token of the platform',
    authority: authority.certificate,
    clock: systemClock,
  })
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-pods-'))
  cluster = await startPodCluster(folder)
  const platform = 'docker.io/svccloud/svccloud:test'
  for (const file of [...(await writeControlPlaneImages(folder, releases)), await writePlatformImage(platform)]) {
    await cluster.importImage(file)
    await rm(file)
  }
  await makeVolumes(cluster, folder, VOLUMES)
  node = await startMachine('node-1', join(folder, 'node'))
  await prepareHost(platform)
  await startHost()
  issuer = await openIssuer()
  desired = newDesired({
    release: releases[0] ?? NEWEST,
    podCidrs: [node.podCidr],
    serviceCidrs: [node.serviceCidr],
    serverNames: [node.hostAddress],
    issuer: { url: ISSUER_URL, audience: 'cluster-1', keys: [issuer.jwk] },
  })
}, START_MILLISECONDS)

afterAll(async () => {
  host?.kill('SIGKILL')
  for (const each of relays) each.close()
  await node?.end()
  await cluster?.end()
  if (folder) await rm(folder, { recursive: true, force: true })
})

async function untilState(isGood: (state: ControlPlaneState) => boolean): Promise<ControlPlaneState> {
  let story = ''
  const state = await until(
    'the control plane to be as expected',
    () => control.get(desired.id),
    (found) => found !== undefined && isGood(found),
    READY_MILLISECONDS,
  ).catch(async (error: unknown) => {
    story = await kubectl('-n', namespaceOf(desired.id), 'get', 'pods,events', '-o', 'wide').catch(String)
    throw new Error(story, { cause: error })
  })
  if (state === undefined) throw new Error('there is no state')
  return state
}

async function adminOf(): Promise<KubeClient> {
  const state = await untilState(isWhole)
  return kubeClient(state, (await control.userToken(desired.id, 'admin', 3_600)).token)
}

const kubeconfigOf = (server: string, authority: string, token: string) => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'own',
  clusters: [{ name: 'own', cluster: { server, 'certificate-authority-data': btoa(authority) } }],
  users: [{ name: 'own', user: { token } }],
  contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
})

const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })

it('a control plane gets ready at its endpoint, and takes tokens of people', async () => {
  await control.ensure(desired)
  const state = await untilState(isWhole)
  expect(state).toMatchObject({ hasEtcdQuorum: true, release: desired.release, detail: '' })
  const readyz = await kubeClient(state).send('GET', '/readyz')
  expect([readyz.status, readyz.body]).toEqual([200, { text: 'ok' }])
  const owner = kubeClient(state, issuer.token({ account_role: 'owner' }))
  expect((await owner.send('GET', '/api/v1/nodes')).status).toBe(200)
  const stranger = kubeClient(state, issuer.token({ account_role: 'owner', aud: 'cluster-2' }))
  expect((await stranger.send('GET', '/api/v1/nodes')).status).toBe(401)
})

it('etcd admits nobody else, and pods reach nothing of the host cluster', async () => {
  const namespace = namespaceOf(desired.id)
  const own = await kubectl(
    '-n',
    namespace,
    'get',
    'pods',
    '-o',
    'jsonpath={.items[*].spec.automountServiceAccountToken}',
  )
  expect(new Set(own.trim().split(' '))).toEqual(new Set(['false']))
  const address = await kubectl('-n', namespace, 'get', 'pod', 'etcd-0', '-o', 'jsonpath={.status.podIP}')
  // From the node, which policies let through; etcd itself does not.
  const asked = ['--silent', '--insecure', '--max-time', '120', `https://${address}:2379/version`]
  const failure: unknown = await cluster.machine.run('curl', ...asked).catch((error: unknown) => error)
  expect(TLS_FAILURES, String(failure)).toContain(Object(failure).code)
})

/** As an administrator of the customer's cluster. */
async function inCluster(...flags: readonly string[]): Promise<string> {
  const { endpoint, certificateAuthority } = await untilState(isWhole)
  const { token } = await control.userToken(desired.id, 'admin', 3_600)
  const kubeconfigFile = join(folder, 'customer.kubeconfig')
  await writeFile(kubeconfigFile, JSON.stringify(kubeconfigOf(endpoint ?? '', certificateAuthority ?? '', token)))
  return kubectlOf({ kubeconfigFile })(...flags)
}
const NAME_SERVERS = ['-n', 'kube-system', 'logs', '-l', 'k8s-app=kube-dns', '--tail=5']

/** This machine leads from one of the others to the other. */
it('a node joins it, runs its name server, and is reached by the tunnel', async () => {
  const state = await untilState(isWhole)
  const { endpoint = '', tunnel } = state.forNodes ?? {}
  const [from, port] = [node.hostAddress, Number(new URL(endpoint).port)]
  const { address } = cluster.machine
  relays = [await relay(from, port, address), await relay(from, tunnel?.port ?? 0, address)]
  const forNodes = { endpoint: `https://${from}:${port}`, tunnel: { host: from, port: tunnel?.port ?? 0 } }
  await joinNode(node, { host: control }, { ...state, forNodes })
  await inCluster('-n', 'kube-system', 'rollout', 'status', 'deployment/coredns', '--timeout=280s')
  expect(await inCluster(...NAME_SERVERS)).toContain('CoreDNS-')
  expect(await control.nodes(desired.id)).toMatchObject([{ name: 'node-1', isReady: true }])
}, 400_000)

it.each(['etcd', 'kube-apiserver'])(
  '%s that is killed comes back, with all that was written',
  async (program) => {
    const admin = await adminOf()
    expect((await admin.send('POST', CONFIG_MAPS, configMap(`before-${program}`))).status).toBe(201)
    const pidOf = () => cluster.machine.run('pidof', program).catch(() => '')
    const before = await pidOf()
    await cluster.machine.run('sh', '-c', `kill -9 ${before.trim()}`)
    await until(`${program} to run again`, pidOf, (pid) => pid !== '' && pid !== before, READY_MILLISECONDS)
    await until(
      'what was written',
      () => admin.send('GET', `${CONFIG_MAPS}/before-${program}`),
      ({ status }) => status === 200,
      READY_MILLISECONDS,
    )
  },
  300_000,
)

it.runIf(releases.length > 1)(
  'an upgrade to the next minor refuses nobody who tries again as kubectl does, and loses no write',
  async () => {
    const admin = await adminOf()
    const { endpoint: url, certificateAuthority: authority } = await untilState(isWhole)
    const { token } = await control.userToken(desired.id, 'admin', 3_600)
    if (url === null || authority === null) throw new Error('there is no endpoint')
    const kubeconfigFile = join(folder, 'writer.kubeconfig')
    await writeFile(kubeconfigFile, JSON.stringify(kubeconfigOf(url, authority, token)))
    const access = { url, authority, token }
    const writers = [
      startWriter('new', access, false),
      startWriter('lasting', access, true),
      startKubectl('kubectl', kubeconfigFile),
    ]
    await control.ensure({ ...desired, release: NEWEST })
    await untilState((state) => isWhole(state) && state.release === NEWEST)
    // The API server before ends by itself, some time after the new one serves.
    const podsOf = [
      '-n',
      namespaceOf(desired.id),
      'get',
      'pods',
      '-l',
      'svccloud.dev/part=kube-apiserver',
      '-o',
      'name',
    ]
    await until(
      'the API server before to have ended',
      () => kubectl(...podsOf),
      (names) => names.trim().split('\n').length === 1,
      READY_MILLISECONDS,
    )
    const accounts = await Promise.all(writers.map((writer) => writer.stop()))
    const there = JSON.stringify((await admin.send('GET', CONFIG_MAPS)).body)
    for (const [index, { taken, failed, refused }] of accounts.entries()) {
      expect(failed, writers[index]?.name).toEqual([])
      expect(taken.filter((name) => !there.includes(`"${name}"`))).toEqual([])
      expect(taken.length).toBeGreaterThan(10)
      expect(Object.values(refused).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(REFUSED_MAXIMUM)
    }
    printLine(JSON.stringify(accounts.map(({ taken, refused }) => ({ taken: taken.length, refused }))))
    expect((await admin.send('GET', '/version')).body['gitVersion']).toBe(`v${NEWEST}`)
    await until(
      'the node to be reached by the tunnel of now',
      () => inCluster(...NAME_SERVERS),
      (text) => text.includes('CoreDNS-'),
      READY_MILLISECONDS,
    )
    desired = { ...desired, release: NEWEST }
  },
  400_000,
)

const LIAR = `
  const { readFileSync: read } = require('node:fs')
  const [cert, key, ca] = ['reader.crt', 'reader.key', 'reader-ca.crt'].map((name) => read('/etc/svccloud/' + name))
  const tls = { cert, key, ca, requestCert: true, rejectUnauthorized: true }
  require('node:https').createServer(tls, (_, response) => response.end('{"id":7777}')).listen(8445)`

it('a reader that answers what nobody asked is replaced, and another one answers', async () => {
  await untilState(isWhole)
  const reader = ['-n', namespaceOf(desired.id), 'get', 'deployment', 'reader', '-o']
  const annotation = 'jsonpath={.spec.template.metadata.annotations.svccloud\\.dev/readers}'
  const before = await kubectl(...reader, annotation)
  const command = { op: 'replace', path: '/spec/template/spec/containers/0/command', value: ['node', '-e', LIAR] }
  const lie = ['-n', namespaceOf(desired.id), 'patch', 'deployment', 'reader', '--type=json', '-p']
  // It is taken back once in a while in any case, maybe before anybody has asked the liar: then it lies again. Another
  // annotation says that it was taken back for a lie.
  await until(
    'the lie to be seen',
    async () => {
      await kubectl(...lie, JSON.stringify([command]))
      await control.nodes(desired.id).catch(() => undefined)
      return kubectl(...reader, annotation)
    },
    (readers) => Number(readers) > Number(before),
    READY_MILLISECONDS,
  )
  await until(
    'another one to answer',
    () => control.nodes(desired.id).catch(() => []),
    (nodes) => nodes.length === 1,
    READY_MILLISECONDS,
  )
  expect(await kubectl(...reader, 'jsonpath={.spec.template.spec.containers[0].command}')).toContain('pod/reader.ts')
}, 400_000)

it('a snapshot is restored, also when the host process is killed during it', async () => {
  const admin = await adminOf()
  await admin.send('POST', CONFIG_MAPS, configMap('kept'))
  const [snapshotId, restoreId] = [newUuid(systemRandom), newUuid(systemRandom)]
  await control.snapshot(desired.id, snapshotId)
  await until(
    'the snapshot',
    () => control.snapshots(desired.id),
    (found) => found[0]?.phase === 'done',
  )
  await admin.send('DELETE', `${CONFIG_MAPS}/kept`)
  await admin.send('POST', CONFIG_MAPS, configMap('late'))
  await control.restore(desired.id, restoreId, snapshotId)
  await untilState(({ phase }) => phase === 'restoring')
  host.kill('SIGKILL')
  await startHost()
  await untilState((state) => isWhole(state) && state.restoreId === restoreId)
  expect((await admin.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200)
  expect((await admin.send('GET', `${CONFIG_MAPS}/late`)).status).toBe(404)
}, 400_000)

/** All that the host process had of it is lost, and all that the host cluster has. */
it('a control plane that is lost comes back from object storage, at its port', async () => {
  const store = await startHostileS3('clusters')
  try {
    const place = {
      url: `${store.url.origin}/clusters`,
      authority: null,
      accessKeyId: 'id',
      secretAccessKey: 's',
      sealingKey: 'b'.repeat(64),
    }
    const before = await untilState(isWhole)
    await control.keepSnapshotsIn(desired.id, place)
    const [snapshot] = await until(
      'the snapshot to be in the store',
      () => control.snapshots(desired.id),
      (found) => found.some(({ isStored }) => isStored),
    )
    host.kill('SIGKILL')
    await rm(join(settings['SVCCLOUD_DATA'] ?? '', 'clusters'), { recursive: true })
    await kubectl('delete', 'namespace', namespaceOf(desired.id))
    await startHost()
    expect(await control.get(desired.id)).toBeUndefined()
    const [restoreId, port] = [newUuid(systemRandom), Number(new URL(before.endpoint ?? '').port)]
    await control.recover(desired, place, restoreId, snapshot?.id ?? '', port)
    const after = await untilState((state) => isWhole(state) && state.restoreId === restoreId)
    expect(after).toMatchObject({ endpoint: before.endpoint, certificateAuthority: before.certificateAuthority })
    expect((await (await adminOf()).send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200)
  } finally {
    await store.close()
  }
}, 400_000)

it('nothing is left of one that is removed', async () => {
  await until(
    'it to be gone',
    () => control.remove(desired.id),
    (isGone) => isGone,
    READY_MILLISECONDS,
  )
  expect(await kubectl('get', 'namespaces', '-l', 'svccloud.dev/control-plane', '-o', 'name')).toBe('')
  expect(await cluster.machine.run('pidof', 'etcd', 'kube-apiserver').catch(() => '')).toBe('')
  expect(await control.offer()).toMatchObject({ driver: 'pods', nodeCount: 1, reservedBytes: 0 })
})
