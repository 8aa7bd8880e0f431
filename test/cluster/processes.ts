/** The processes of the cloud on a real API server, each with a separate user: the API server with its webhook
 *  registered, the controllers, and one host with simulated guests. */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { Namespace, type ResourceType } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { Node } from '../../resources/node/index.ts'
import { startPostgres } from '../database.ts'
import { eventually } from '../eventually.ts'
import { kubeconfig, type RealCluster } from './real-cluster.ts'
import { manifestsOf } from '../catalog.ts'

const ROOT = join(import.meta.dirname, '../..')
const SYSTEM = 'svccloud-system'
const CATALOG = manifestsOf('eu-1', 'eu-1a')

const ServiceAccount: ResourceType<undefined> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
}
const ClusterRoleBinding: ResourceType<undefined> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  scope: 'Cluster',
}

export interface Processes {
  readonly endpoints: { readonly api_url: string; readonly mail_directory: string }
  /** As the administrator. */
  readonly admin: Store
  /** A folder for what a test writes. */
  readonly folder: string
  /** A kubeconfig of a new ServiceAccount of the namespace; answers its file and its user name. */
  newUser(namespace: string, name: string): Promise<{ readonly file: string; readonly username: string }>
  stop(): Promise<void>
}

/** Starts them; answers when the host takes servers. */
export async function startProcesses(cluster: RealCluster): Promise<Processes> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-processes-'))
  for (const name of ['mail', 'n1']) await mkdir(join(folder, name))
  const postgres = await startPostgres()
  const connection = openHttpsTransport(await readKubeconfig(cluster.kubeconfigFile, clock))
  const admin = openClient({ transport: connection.transport, fieldManager: 'tests', clock, random })
  const children: ChildProcess[] = []
  const said: string[] = []

  async function newUser(namespace: string, name: string) {
    await admin.create(ServiceAccount, { metadata: { name, namespace }, spec: undefined })
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const answer = await connection.transport({
      method: 'POST',
      path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
    // a TokenRequest
    const { status } = JSON.parse(await answer.text()) as { readonly status: { readonly token: string } }
    const file = join(folder, `${name}.kubeconfig`)
    await writeFile(file, kubeconfig({ url: cluster.url, ca: cluster.ca, user: { token: status.token } }), {
      mode: 0o600,
    })
    return { file, username: `system:serviceaccount:${namespace}:${name}` }
  }

  /** Starts a process and waits for its word that it is ready. */
  function start(main: string, settings: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string>>> {
    const inherited = Object.fromEntries(
      Object.entries(process.env).filter(
        ([name]) => !name.startsWith('SVCCLOUD_') && name !== 'DATABASE_URL' && name !== 'KUBECONFIG',
      ),
    )
    const child = fork(join(ROOT, main), [], {
      execPath: nodeBinary(),
      execArgv: [],
      cwd: folder,
      env: { ...inherited, ...settings },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    children.push(child)
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => said.push(`${main}: ${chunk.toString()}`))
    return new Promise((resolve, reject) => {
      child.on('message', (message) => resolve(message as Record<string, string>)) // tellParent of the process
      child.once('exit', (code) => reject(new Error(`${main} ended with ${code}:\n${said.slice(-20).join('')}`)))
    })
  }

  async function stop(): Promise<void> {
    const ended = children
      .filter(({ exitCode }) => exitCode === null)
      .map((child) => new Promise((resolve) => child.once('exit', resolve)))
    for (const child of children) child.kill('SIGTERM')
    await Promise.all(ended)
    await connection.close()
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }

  try {
    await admin.create(Namespace, { metadata: { name: SYSTEM }, spec: {} })
    const users = {
      apiserver: await newUser(SYSTEM, 'apiserver'),
      controllers: await newUser(SYSTEM, 'controllers'),
      agent: await newUser(SYSTEM, 'agent'),
    }
    const subjects = Object.keys(users).map((name) => ({ kind: 'ServiceAccount', name, namespace: SYSTEM }))
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' }
    const binding = { metadata: { name: 'svccloud' }, spec: undefined, subjects, roleRef }
    await admin.create(ClusterRoleBinding, binding)
    const { url } = await postgres.createDatabase()
    const catalog = join(folder, 'catalog.yaml')
    await writeFile(catalog, CATALOG.map((object) => stringify(object)).join('---\n'))
    await start('controllers/main.ts', {
      SVCCLOUD_DATABASE_URL: url,
      SVCCLOUD_KUBECONFIG: users.controllers.file,
      SVCCLOUD_INSTALL_CRDS: 'true',
      SVCCLOUD_CATALOG_FILE: catalog,
    })
    const agent = start('agents/node/main.ts', {
      SVCCLOUD_NODE_NAME: 'n1',
      SVCCLOUD_KUBECONFIG: users.agent.file,
      SVCCLOUD_DATA: join(folder, 'n1'),
      SVCCLOUD_HYPERVISOR: 'simulated',
    })
    const mail = join(folder, 'mail')
    const apiserver = await start('apiserver/main.ts', {
      SVCCLOUD_DATABASE_URL: url,
      SVCCLOUD_KUBECONFIG: users.apiserver.file,
      SVCCLOUD_PORT: '0',
      SVCCLOUD_OPERATOR_PORT: '0',
      SVCCLOUD_MAIL_DIRECTORY: mail,
      SVCCLOUD_WEBHOOK_PORT: '0',
      SVCCLOUD_WEBHOOK_TOKEN_FILE: cluster.webhookTokenFile,
      SVCCLOUD_WEBHOOK_REGISTER: 'true',
      SVCCLOUD_PLATFORM_USERS: `${users.apiserver.username},${users.controllers.username}`,
    })
    await agent
    await eventually(
      'the node to be ready',
      async () => (await admin.get(Node, { name: 'n1' }))?.status?.state === 'ready',
    )
    return { endpoints: { api_url: apiserver['api_url'] ?? '', mail_directory: mail }, admin, folder, newUser, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
