/** The machine of a dev cluster in a network namespace instead of a guest, without its node: the real programs of its
 *  control plane, with keys that it makes itself, tokens that the platform signs, and its ingress. */
import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { devKubeconfigOf } from '../../../../apiserver/nouns/dev-cluster/access.ts'
import { tokenFor } from '../../../../apiserver/nouns/kubernetes-cluster/access.ts'
import { devClusterDocument } from '../../../../controllers/nouns/dev-cluster/machine.ts'
import { configurationFingerprint } from '../../../../controllers/nouns/managed-machine/index.ts'
import { DEV_ADMINS_MAXIMUM } from '../../../../domain/dev-cluster/rules.ts'
import { DEV_CLUSTER_TEMPLATE } from '../../../../domain/managed-machine/rules.ts'
import {
  BUSYBOX_IMAGE,
  COREDNS_IMAGE,
  DEV_CLUSTER_RELEASES,
  PAUSE_IMAGE,
} from '../../../../domain/kubernetes-cluster/versions.ts'
import type { Customer } from '../../../../kit/http/call.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { DevCluster, type DevClusterStatus } from '../../../../resources/dev-cluster/index.ts'
import { type MachineAnswer, MachineDocument } from '../../../../resources/managed-machine/index.ts'
import { buildTool, type Tool, toolPath } from '../../../../tools/cluster/build.ts'
import { until } from '../../../eventually.ts'
import { type MachineHere, openMachine } from './machine-script.ts'
import { PYTHON } from '../../../python.ts'

const RELEASE = DEV_CLUSTER_RELEASES.at(-1) ?? ''
const TOOLS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kubectl'] as const
const ADDRESSES = { ipv6: '2001:db8::1', ipv4: '198.51.100.5' }
const SERVED = '10.9.0.1'
const UID = '6a31d3a0-3df6-4f5e-a2a1-5f0f2a4f8f11'
const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const issuer = {
  publicKey: { ...(keys.publicKey.export({ format: 'jwk' }) as Record<string, string>), kid: 'k', alg: 'ES256' },
  privateKey: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
}
const clusterOf = (status: DevClusterStatus = {}) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'DevCluster',
  status,
  metadata: { name: 'c1', namespace: 'acct-x', uid: UID },
  spec: DevCluster.spec.parse({
    zone: 'eu-1a',
    name: 'shop',
    plan: 'starter-2c-4g',
    version: '1.36',
    publicIpv4: true,
    sshKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPt6pB8hXCcGUnTBPfo1sMHiSTcyH8bIVrfzBNAVKuUf ada'],
  }),
})

const namespace = `dev-${newUuid(systemRandom).slice(0, 8)}`
const inside = ['-u', 'ip', 'netns', 'exec', namespace]
let machine: MachineHere
let said: NonNullable<MachineAnswer['report']['devCluster']> | undefined
let web: ReturnType<typeof execFile> | undefined

const run = (program: string, ...words: readonly string[]) => runProgram('unshare', [...inside, program, ...words])
type Admin = NonNullable<NonNullable<typeof said>['admins']>[number]
const kubeconfigOf = (admin: Admin) => {
  const { certificateAuthority } = said ?? {}
  const cluster = clusterOf({ isMade: true, certificateAuthority, ipv4Address: ADDRESSES.ipv4 })
  return devKubeconfigOf(cluster, { issuer, now: new Date(), random: systemRandom, admin }).kubeconfig
}
const file = (name: string) => join(machine.folder, name)
const kubectl = (...words: readonly string[]) => run(toolPath('kubectl'), '--kubeconfig', file('kubeconfig'), ...words)

/** What its controller would hand over. */
async function deliver(endedAdmins: readonly string[] = []): Promise<void> {
  const own = { role: 'cluster', publicIpv6: ADDRESSES.ipv6, publicIpv4: ADDRESSES.ipv4, publicMacAddress: '' }
  const document = devClusterDocument(clusterOf({ admins: said?.admins }), {
    accountId: 'a',
    isClaimed: true,
    region: 'eu-1',
    networkCidr: undefined,
    lost: [],
    isServerRemoved: false,
    requests: [],
    issuerKey: issuer.publicKey,
    endedAdmins,
    machines: [own as never], // what it is asked for
  })
  const id = { machine: 'm', generation: 1, fingerprint: configurationFingerprint(document) }
  expect((await machine.apply(MachineDocument.parse({ ...document, ...id }))).fingerprint).toBe(id.fingerprint)
}

beforeAll(async () => {
  for (const tool of TOOLS) await buildTool(tool)
  await runProgram('ip', ['netns', 'add', namespace])
  await run('ip', 'link', 'set', 'lo', 'up')
  for (const address of [`${ADDRESSES.ipv6}/128`, `${ADDRESSES.ipv4}/32`, `${SERVED}/32`])
    await run('ip', 'address', 'add', address, 'dev', 'lo')
  machine = await openMachine({
    template: DEV_CLUSTER_TEMPLATE,
    prefix: ['unshare', ...inside],
    settings: () => ({ MACHINE_WITHOUT: 'containerd,kubelet,kube-proxy,local-path', MACHINE_START_SECONDS: '60' }),
  })
  await mkdir(file(`opt/kubernetes/${RELEASE}`), { recursive: true })
  const at = (tool: Tool) => file(tool === 'etcd' ? 'opt/kubernetes/etcd' : `opt/kubernetes/${RELEASE}/${tool}`)
  for (const tool of TOOLS) await symlink(toolPath(tool), at(tool))
  const share = 'usr/share/svccloud'
  await mkdir(file(share), { recursive: true })
  await writeFile(file(`${share}/images.json`), JSON.stringify([COREDNS_IMAGE, BUSYBOX_IMAGE, PAUSE_IMAGE]))
  await deliver()
  const answer = await until(
    'its API',
    () => machine.ask('status'),
    ({ report }) => report.devCluster?.isReady === true && report.devCluster.detail.includes('node'),
    240_000,
  )
  said = answer.report.devCluster
  const [admin] = said?.admins ?? []
  if (admin !== undefined) await writeFile(file('kubeconfig'), kubeconfigOf(admin))
}, 400_000)

afterAll(async () => {
  web?.kill()
  await machine?.close()
  await runProgram('ip', ['netns', 'delete', namespace])
})

test('it says what it runs, and that it has no node', () => {
  expect(said).toMatchObject({ version: `v${RELEASE}`, isNodeReady: false, detail: 'its node has not joined' })
})

test('its keys are for root alone', async () => {
  const folder = file('var/lib/svccloud/cluster')
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
  const names = (await readdir(folder)).filter((name) => name.endsWith('.key'))
  expect(names).toContain('ca.key')
  for (const name of names) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600)
  expect(await readFile(file('var/lib/svccloud/current/document.json'), 'utf8')).not.toContain('PRIVATE')
})

test('the token that the platform signs is one of the service account of administrators', async () => {
  expect(await kubectl('auth', 'whoami')).toContain('system:serviceaccount:kube-system:svccloud-admin-1')
  expect((await kubectl('auth', 'can-i', '*', '*')).trim()).toBe('yes')
  expect(await kubectl('get', 'storageclass,ingressclass,deployment', '-A')).toMatch(/svccloud[^]*coredns/)
})

test('one of its administrators ends, no other does, and nothing is restarted for it', {
  timeout: 400_000,
}, async () => {
  const admins = async () => {
    said = (await machine.ask('status')).report.devCluster
    return said?.admins ?? []
  }
  const all = await until('its administrators', admins, (found) => found.length === DEV_ADMINS_MAXIMUM)
  const [first, second] = all
  if (first === undefined || second === undefined) throw new Error('there are too few')
  await writeFile(file('second'), kubeconfigOf(second))
  const asSecond = () =>
    run(toolPath('kubectl'), '--kubeconfig', file('second'), 'auth', 'whoami').then(
      (text) => (text.includes(second.name) ? 'known' : text),
      (error: unknown) => (String(error).includes('must be logged in') ? 'unknown' : String(error)),
    )
  expect(await asSecond()).toBe('known')
  const keeper = () => readFile(file('run/svccloud/objects.service.pid'), 'utf8')
  const before = await keeper()
  await deliver([second.uid])
  // API servers remember a good token for ten seconds.
  await until('its end', asSecond, (found) => found === 'unknown')
  const after = await until('another in its place', admins, (found) => found.length === DEV_ADMINS_MAXIMUM)
  expect(after.find(({ name }) => name === second.name)?.uid).not.toBe(second.uid)
  expect(after.filter(({ name }) => name !== second.name)).toEqual(all.filter(({ name }) => name !== second.name))
  expect(await kubectl('auth', 'whoami')).toContain(first.name)
  expect(await keeper()).toBe(before)
  // The new one of the name has its rights, and the old token none.
  await writeFile(file('third'), kubeconfigOf(after[1] ?? second))
  expect(await run(toolPath('kubectl'), '--kubeconfig', file('third'), 'auth', 'can-i', '*', '*')).toContain('yes')
  expect(await asSecond()).toBe('unknown')
})

test.each([
  ['owner', 'yes', 'yes'],
  ['member', 'yes', 'no'],
  ['viewer', 'no', 'no'],
] as const)('a token of the role %s may as much as that', async (role, deployments, roles) => {
  const permissions = role === 'viewer' ? ['read'] : ['read', 'operate']
  const caller = { userId: 'u1', role, permissions } as unknown as Customer // what tokens are made from
  const may = async (audience: string, what: string) => {
    const { token } = tokenFor(issuer, { caller, now: new Date(), audience })
    const ask = ['--token', token, 'auth', 'can-i', 'create', what]
    const server = ['--server', `https://${ADDRESSES.ipv4}:6443`, '--insecure-skip-tls-verify']
    return run(toolPath('kubectl'), '--kubeconfig', '/dev/null', ...server, ...ask).then(
      (text) => text.trim(),
      (error: unknown) => (String(error).includes('must be logged in') ? 'unknown' : 'no'),
    )
  }
  // Its controllers put the rights of the roles together.
  await until(
    'its rights',
    async () => [await may(UID, 'deployments'), await may(UID, 'clusterroles')].join(),
    (found) => found === `${deployments},${roles}`,
  )
  expect(await may('another-cluster', 'deployments')).toBe('unknown')
})

const MANIFEST = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{name: http, port: 80, targetPort: 8099}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [${SERVED}], conditions: {ready: true}}]
ports: [{name: http, port: 8099, protocol: TCP}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  tls: [{hosts: [tls.example.com], secretName: cert}]
  rules:
    - host: tls.example.com
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
`

test('an Ingress is answered on both ports and says where, as long as it is there', async () => {
  await writeFile(file('index.html'), 'hello')
  const serve = [PYTHON, '-m', 'http.server', '8099', '--bind', SERVED, '--directory', machine.folder]
  web = execFile('unshare', [...inside, ...serve])
  const subject = ['-subj', '/CN=tls.example.com', '-addext', 'subjectAltName=DNS:tls.example.com']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30']
  const [key, certificate] = [file('tls.key'), file('tls.crt')]
  await promisify(execFile)('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', certificate])
  await kubectl('create', 'secret', 'tls', 'cert', `--cert=${certificate}`, `--key=${key}`)
  await writeFile(file('web.yaml'), MANIFEST)
  await kubectl('apply', '-f', file('web.yaml'))
  const get = (...words: readonly string[]) => run('curl', '-s', '-m', '5', ...words).catch(() => '')
  const plain = () => get('-H', 'Host: tls.example.com', `http://[${ADDRESSES.ipv6}]/index.html`)
  await until('an answer', plain, (text) => text === 'hello')
  const resolve = ['--resolve', `tls.example.com:443:${ADDRESSES.ipv4}`, '--cacert', certificate]
  expect(await get(...resolve, 'https://tls.example.com/index.html')).toBe('hello')
  expect(await kubectl('get', 'ingress', 'web')).toContain(ADDRESSES.ipv4)
  await kubectl('delete', 'ingress', 'web')
  await until('no answer', plain, (text) => text.startsWith('No Ingress'))
})
