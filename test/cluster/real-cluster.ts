/** Starts a real Kubernetes control plane on loopback for tests: etcd, kube-apiserver and kube-controller-manager, with
 *  TLS and RBAC on. Unless it is to run pods there is no scheduler and no kubelet: pods stay Pending. Garbage
 *  collection and namespace deletion work, as the controller manager runs. */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { probePort } from '../../embedded/kit/ports.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { newAuthority, newServiceAccountKey, type Pair } from './certificates.ts'

export interface RealCluster {
  readonly url: string
  /** Speaks as an administrator (group system:masters) by bearer token. */
  readonly kubeconfigFile: string
  /** What its kube-apiserver shows webhooks. */
  readonly webhookTokenFile: string
  readonly caFile: string
  readonly ca: string
  readonly token: string
  /** Kills kube-apiserver without warning and starts it again; resolves when it serves. */
  crash(): Promise<void>
  /** Ends the processes and removes everything they stored. */
  stop(): Promise<void>
}

export interface ClusterOptions {
  /** Makes etcd wait for the disk as it does in production. Off for speed; benchmarks turn it on. */
  readonly durable?: boolean
  /** Starts kube-scheduler, and kwok as the kubelet of every node: pods get to Running, and nothing runs. */
  readonly runsPods?: boolean
}

const HOST = '127.0.0.1'
const READY_DEADLINE_MILLISECONDS = 90_000
const STOP_DEADLINE_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 50
const LOG_TAIL_CHARACTERS = 4_000

/** A kubeconfig with one context; everything it needs stands inside the file. */
export function kubeconfig({ url, ca, user }: { url: string; ca: string; user: { token: string } | Pair }): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const credentials =
    'token' in user
      ? { token: user.token }
      : { 'client-certificate-data': base64(user.certificate), 'client-key-data': base64(user.key) }
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'real', cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'user', user: credentials }],
    contexts: [{ name: 'real', context: { cluster: 'real', user: 'user' } }],
    'current-context': 'real',
  })
}

/** Has kube-apiserver show the token to every webhook. Both files are JSON, which is YAML. */
async function admissionConfiguration(
  write: (name: string, text: string) => Promise<string>,
  token: string,
): Promise<string> {
  const users = [{ name: '*', user: { token } }]
  const kubeConfigFile = await write('webhooks.kubeconfig', JSON.stringify({ apiVersion: 'v1', kind: 'Config', users }))
  const apiVersion = 'apiserver.config.k8s.io/v1'
  const configuration = { apiVersion, kind: 'WebhookAdmissionConfiguration', kubeConfigFile }
  const plugins = [{ name: 'ValidatingAdmissionWebhook', configuration }]
  return JSON.stringify({ apiVersion, kind: 'AdmissionConfiguration', plugins })
}

/** Without the limits on its own requests that it has by default. */
const schedulerConfiguration = (kubeconfigFile: string): string =>
  JSON.stringify({
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    clientConnection: { kubeconfig: kubeconfigFile, qps: 10_000, burst: 10_000 },
    leaderElection: { leaderElect: false },
  })

/** What kwok does as a kubelet: nodes get ready with room for everything, and pods that are on a node run at once. */
const STAGES = [
  {
    kind: 'Node',
    expression: { key: '.status.phase', operator: 'DoesNotExist' },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
      allocatable: { cpu: '1k', memory: '1Ti', pods: '1M' },
      capacity: { cpu: '1k', memory: '1Ti', pods: '1M' },
    },
  },
  {
    kind: 'Pod',
    expression: { key: '.status.phase', operator: 'In', values: ['Pending'] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  },
]
  .map(({ kind, expression, status }) =>
    JSON.stringify({
      apiVersion: 'kwok.x-k8s.io/v1alpha1',
      kind: 'Stage',
      metadata: { name: kind.toLowerCase() },
      spec: {
        resourceRef: { apiGroup: 'v1', kind },
        selector: { matchExpressions: [expression] },
        next: { statusTemplate: JSON.stringify(status) },
      },
    }),
  )
  .join('\n---\n')

/** One child process whose output goes to a file, so that a failure to start can be explained. */
class Component {
  readonly name: string
  readonly logFile: string
  readonly child: ChildProcess
  readonly #ended: Promise<void>

  constructor(name: string, { binary, folder, flags }: { binary: string; folder: string; flags: readonly string[] }) {
    this.name = name
    this.logFile = join(folder, `${name}.log`)
    const log = createWriteStream(this.logFile)
    this.child = spawn(binary, flags, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    this.child.stdout?.pipe(log, { end: false })
    this.child.stderr?.pipe(log, { end: false })
    this.#ended = new Promise((resolve) =>
      this.child.once('close', () => log.end(resolve)).once('error', () => log.end(resolve)),
    )
    process.once('exit', this.#kill)
  }

  readonly #kill = () => void this.child.kill('SIGKILL')

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null || this.child.pid === undefined
  }

  /** Without warning. */
  async crash(): Promise<void> {
    process.off('exit', this.#kill)
    this.#kill()
    await this.#ended
  }

  async stop(): Promise<void> {
    process.off('exit', this.#kill)
    this.child.kill('SIGTERM')
    const patience = setTimeoutOnce(STOP_DEADLINE_MILLISECONDS, this.#kill)
    await this.#ended
    patience()
  }
}

function setTimeoutOnce(milliseconds: number, work: () => void): () => void {
  const timer = setTimeout(work, milliseconds)
  return () => clearTimeout(timer)
}

const statusOf = (url: string, { ca, token }: { ca: string; token: string }) =>
  new Promise<number>((resolve) => {
    request(url, { ca, headers: { authorization: `Bearer ${token}` }, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .once('error', () => resolve(0))
      .end()
  })

async function waitUntil(isReady: () => Promise<boolean>, components: readonly Component[]): Promise<void> {
  const deadline = performance.now() + READY_DEADLINE_MILLISECONDS
  while (!(await isReady())) {
    const dead = components.find((component) => component.hasEnded)
    if (!dead && performance.now() < deadline) {
      await sleep(POLL_MILLISECONDS)
      continue
    }
    const blamed = dead ?? components.at(-1)
    const log = blamed ? await readFile(blamed.logFile, 'utf8') : ''
    throw new Error(
      `${blamed?.name} ${dead ? 'ended' : 'did not get ready in time'}:\n${log.slice(-LOG_TAIL_CHARACTERS)}`,
    )
  }
}

/** Builds what is missing (see tools/cluster/build.ts), starts it and waits until it serves: 3 to 5 seconds when
 *  everything is built. */
export async function startRealCluster({
  durable = false,
  runsPods = false,
}: ClusterOptions = {}): Promise<RealCluster> {
  const etcdBinary = await buildTool('etcd')
  const serverBinary = await buildTool('kube-apiserver')
  const controllerBinary = await buildTool('kube-controller-manager')
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-cluster-'))
  const components: Component[] = []
  const stop = async () => {
    // In the order of dependence, so that nobody spends its last seconds complaining about a stopped server.
    for (const component of components.toReversed()) await component.stop()
    await rm(folder, { recursive: true, force: true })
  }
  const start = (name: string, binary: string, flags: readonly string[]) => {
    const component = new Component(name, { binary, folder, flags })
    components.push(component)
    return component
  }
  const write = async (name: string, text: string) => {
    const file = join(folder, name)
    await writeFile(file, text, { mode: 0o600 })
    return file
  }

  try {
    const [etcdPort, peerPort, port] = [await probePort(HOST, 0), await probePort(HOST, 0), await probePort(HOST, 0)]
    const url = `https://127.0.0.1:${port}`
    const etcdUrl = `http://127.0.0.1:${etcdPort}`
    const peerUrl = `http://127.0.0.1:${peerPort}`
    const authority = await newAuthority('svccloud-test-ca')
    const ca = authority.certificate
    const server = await authority.issue({
      commonName: 'kube-apiserver',
      addresses: [
        { type: 'ip', value: '127.0.0.1' },
        { type: 'dns', value: 'localhost' },
      ],
    })
    const controllerManager = await authority.issue({ commonName: 'system:kube-controller-manager' })
    const token = randomUUID()
    const webhookToken = randomUUID()
    const webhookTokenFile = await write('webhook-token', webhookToken)
    const caFile = await write('ca.pem', ca)
    const serviceAccountKeyFile = await write('service-account.pem', newServiceAccountKey())
    const kubeconfigFile = await write('kubeconfig', kubeconfig({ url, ca, user: { token } }))

    start('etcd', etcdBinary, [
      `--data-dir=${join(folder, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
      `--unsafe-no-fsync=${!durable}`,
      '--log-level=warn',
    ])
    const admissionFile = await write('admission.json', await admissionConfiguration(write, webhookToken))
    const serverFlags = [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--secure-port=${port}`,
      `--tls-cert-file=${await write('server.pem', server.certificate)}`,
      `--tls-private-key-file=${await write('server.key', server.key)}`,
      `--client-ca-file=${caFile}`,
      `--token-auth-file=${await write('tokens.csv', `${token},admin,admin,"system:masters"\n`)}`,
      '--authorization-mode=RBAC',
      `--service-account-key-file=${serviceAccountKeyFile}`,
      `--service-account-signing-key-file=${serviceAccountKeyFile}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      '--service-cluster-ip-range=10.0.0.0/24',
      // Webhooks behind a Service are asked at its endpoints: no kube-proxy makes the Service's own address work here.
      '--enable-aggregator-routing=true',
      `--admission-control-config-file=${admissionFile}`,
      // Pods would wait for a token that nobody mounts here.
      '--disable-admission-plugins=ServiceAccount',
    ]
    let apiserver = start('kube-apiserver', serverBinary, serverFlags)
    const isServing = async () => (await statusOf(`${url}/readyz`, { ca, token })) === 200
    await waitUntil(isServing, components)
    start('kube-controller-manager', controllerBinary, [
      `--kubeconfig=${await write('controller-manager.kubeconfig', kubeconfig({ url, ca, user: controllerManager }))}`,
      `--service-account-private-key-file=${serviceAccountKeyFile}`,
      `--root-ca-file=${caFile}`,
      '--use-service-account-credentials=true',
      '--leader-elect=false',
      '--bind-address=127.0.0.1',
      '--secure-port=0',
      '--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,' +
        'serviceaccount-token-controller,clusterrole-aggregation-controller',
    ])
    // The controllers work once the default service account exists: it is the first thing one of them does.
    const isReconciling = async () =>
      (await statusOf(`${url}/api/v1/namespaces/default/serviceaccounts/default`, { ca, token })) === 200
    await waitUntil(isReconciling, components)
    if (runsPods) {
      start('kube-scheduler', await buildTool('kube-scheduler'), [
        `--config=${await write('scheduler.json', schedulerConfiguration(kubeconfigFile))}`,
        '--secure-port=0',
      ])
      start('kwok', await buildTool('kwok'), [
        `--kubeconfig=${kubeconfigFile}`,
        `--config=${await write('stages.yaml', STAGES)}`,
        '--manage-all-nodes=true',
        `--server-address=${HOST}:${await probePort(HOST, 0)}`,
      ])
    }
    const crash = async () => {
      await apiserver.crash()
      components.splice(components.indexOf(apiserver), 1)
      apiserver = start('kube-apiserver', serverBinary, serverFlags)
      await waitUntil(isServing, components)
    }
    return { webhookTokenFile, url, kubeconfigFile, caFile, ca, token, crash, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
