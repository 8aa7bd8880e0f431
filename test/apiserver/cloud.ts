/** The whole API in one process: real PostgreSQL, the embedded Kubernetes API in memory, the real pipeline with answers
 *  checked against the published documents; no sockets, no controllers, no hosts. People sign up, verify and sign in as
 *  anybody does. */
import { parseAllDocuments } from 'yaml'
import { readFile } from 'node:fs/promises'
import { defined } from '../../domain/defined.ts'
import { MANAGED_TEMPLATE } from '../../domain/managed-machine/rules.ts'
import type { Role } from '../../domain/permissions.ts'
import { type App, createApp } from '../../apiserver/app.ts'
import type { Room } from '../../domain/node/placement.ts'
import type { AgentConnections } from '../../apiserver/console/consoles.ts'
import type { Database } from '../../db/kit/open.ts'
import { mirrorNode } from '../../db/placement/index.ts'
import { listStaffAudit, type StaffAuditEntry } from '../../db/staff/index.ts'
import { ADMIN, type Core, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import type { HttpResponse } from '../../kit/http/exchange.ts'
import { BUDGETS } from '../../kit/http/steps/budget.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds } from '../../kit/kube/crd.ts'
import { crds } from '../../controllers/kit/crds.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import { type Clock, systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { API_GROUP } from '../../resources/kit/define.ts'
import { RESOURCES } from '../../resources/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../resources/node/index.ts'
import { documented } from '../contract/document-check.ts'
import { hostsOf } from '../../integrations/control-planes/configuration.ts'
import type { HostClustersSettings } from '../../integrations/control-planes/host-clusters.ts'
import { openSimulatedControlPlanes } from '../control-planes.ts'
import { openSimulatedObjectStorage } from '../object-storage.ts'
import { openTestPayments } from '../payments.ts'

export interface Reply {
  readonly status: number
  readonly headers: HttpResponse['headers']
  readonly text: string
  /** Of JSON bodies; empty otherwise. */
  readonly body: Record<string, any> // eslint: tests read many shapes
}

export interface SendOptions {
  readonly body?: unknown
  /** The body as it is, without becoming JSON. */
  readonly raw?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string | undefined>>
}

export interface Person {
  readonly email: string
  readonly accountId: string
  readonly userId: string
  /** With the session's cookies and CSRF header. */
  send(method: string, path: string, options?: SendOptions): Promise<Reply>
  /** A new API token. */
  token(scope: unknown): Promise<string>
}

export const PASSWORD = 'correct zebra lantern 42'
export const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example'
/** Before the name of a user of the management cluster: a token of theirs. */
export const OPERATOR_TOKEN = 'operator-'
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', scope: 'Cluster' } as const
const ClusterRole: ResourceType<undefined> = { ...RBAC, kind: 'ClusterRole', plural: 'clusterroles' }
const ClusterRoleBinding: ResourceType<undefined> = {
  ...RBAC,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
}
const NODE = 'node-a1'
const ZONE = 'eu-1-a'

/** `disturb` stands between the API and Kubernetes; `agents` are the hosts' consoles. */
export async function openCloud(
  db: Database,
  options: {
    readonly disturb?: (serve: Transport) => Transport
    readonly agents?: AgentConnections
    readonly hasPeers?: boolean
    /** Default yes. */
    readonly isWebhookCalled?: boolean
    readonly staffPortalUrl?: string
    /** False: no payment processor is configured. */
    readonly hasPayments?: boolean
    readonly hostClusters?: HostClustersSettings
    /** Of a Kubernetes API that was started for it; one in memory when absent. */
    readonly core?: Core
  } = {},
) {
  const core =
    options.core ??
    (await openCore({
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      storage: memoryStorage(),
      authenticate: (token) =>
        token.startsWith(OPERATOR_TOKEN)
          ? { name: token.slice(OPERATOR_TOKEN.length), groups: ['system:authenticated'] }
          : undefined,
    }))
  const serve: Transport = (request) => core.handle(request, ADMIN)
  const client = { fieldManager: 'svccloud-apiserver', clock: systemClock, random: systemRandom }
  const admin = openClient({ ...client, transport: serve, fieldManager: 'kubectl' })
  await installCrds(admin, crds(), systemClock)
  const catalog = parseAllDocuments(await readFile('embedded/catalog.yaml', 'utf8')).map(
    (document) => document.toJS() as KubeObject,
  )
  for (const { kind, metadata, spec } of catalog) {
    const type = RESOURCES.find((resource) => resource.kind === kind)
    if (type !== undefined) await admin.create(type, { metadata, spec })
  }
  await admin.create(Zone, {
    metadata: { name: ZONE },
    spec: { displayName: 'A', region: 'eu-1', isClosed: false, capabilities: [] },
  })
  await admin.patch(
    Zone,
    { name: ZONE },
    {
      status: {
        hasPrivateNetworks: true,
        builtTemplates: [MANAGED_TEMPLATE],
        objectStorageBackend: 'svc-s3-single',
        kubernetesReleases: ['1.35.4', '1.36.3'],
        hasPlaygrounds: true,
      },
    },
    'status',
  )
  await mirrorNode(db, {
    node: NODE,
    zone: ZONE,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 256, memoryMebibytes: 1_048_576, storageGibibytes: 8_192 },
  })

  let later = 0
  const clock: Clock = { ...systemClock, monotonicMilliseconds: () => systemClock.monotonicMilliseconds() + later }
  const stop = new AbortController()
  const store = openClient({ ...client, transport: options.disturb?.(serve) ?? serve })
  const metrics = openRegistry({ isProcessWide: false })
  const caches = openCaches({
    store: admin,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    registry: metrics,
  })
  const payments = openTestPayments(systemClock)
  const objectStorage = openSimulatedObjectStorage([ZONE])
  const gatewayZones: string[] = []
  const gateway = openSimulatedObjectStorage(gatewayZones, 'rgw')
  const controlPlanes = openSimulatedControlPlanes(['eu-1'])
  const otherControlPlanes = openSimulatedControlPlanes(['eu-2'])
  const opened = await createApp({
    objectStorage: { stores: [objectStorage, gateway], obstacle: '' },
    controlPlanes: { ...controlPlanes.offer, others: hostsOf(otherControlPlanes.offer) },
    ...defined({ hostClusters: options.hostClusters }),
    store,
    caches,
    db,
    clock,
    random: systemRandom,
    log: silentLog,
    metrics,
    agents: options.agents ?? NO_AGENTS,
    publicUrl: 'http://127.0.0.1:8080',
    ...defined({ staffPortalUrl: options.staffPortalUrl }),
    canSendMail: true,
    kubernetes: serve,
    checkAnswers: true,
    ...(options.hasPayments === false ? {} : { payments: payments.payments }),
    hasPeers: options.hasPeers ?? false,
    isWebhookCalled: () => options.isWebhookCalled ?? true,
    sealingKeys: [{ id: 'test', key: systemRandom.bytes(32) }],
  })
  const app: App = {
    customers: documented('customer', opened.customers),
    operators: documented('operator', opened.operators),
  }
  caches.start(stop.signal)
  await caches.ready()

  let addresses = 0
  let paceMilliseconds = 60_000 / BUDGETS.requests.perMinute
  /** Every request comes a little later than the one before, so that nobody here is too fast for the budget of
   *  requests. */
  async function send(
    method: string,
    path: string,
    { body, raw, headers = {} }: SendOptions & { readonly from?: string } = {},
    from = '192.0.2.1',
    audience: keyof App = 'customers',
  ): Promise<Reply> {
    later += paceMilliseconds
    const bytes = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await app[audience]({
      method,
      target: path,
      remoteAddress: from,
      signal: stop.signal,
      headers: { ...(bytes === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...defined({ body: bytes }),
    })
    const text =
      typeof response.body === 'string'
        ? response.body
        : response.body instanceof Uint8Array
          ? Buffer.from(response.body).toString()
          : ''
    const isJson = /^application\/([\w.-]+\+)?json/.test(String(response.headers['content-type'] ?? ''))
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : {},
    }
  }

  /** On the operator listener, as a user of the management cluster. */
  const operate = (
    user: string,
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> =>
    send(
      method,
      path,
      { headers: { authorization: `Bearer ${OPERATOR_TOKEN}${user}`, ...headers }, ...defined({ body }) },
      '192.0.2.9',
      'operators',
    )

  /** A user of the management cluster who may do so with kinds of the platform, everywhere. */
  async function grant(
    user: string,
    rules: readonly {
      readonly resources: readonly string[]
      readonly verbs: readonly string[]
      readonly resourceNames?: readonly string[]
    }[],
  ): Promise<void> {
    const roleRef = { apiGroup: RBAC.group, kind: 'ClusterRole', name: user }
    const named = { metadata: { name: user }, spec: undefined }
    const role = { ...named, rules: rules.map((rule) => ({ apiGroups: [API_GROUP], ...rule })) }
    const binding = { ...named, roleRef, subjects: [{ apiGroup: RBAC.group, kind: 'User', name: user }] }
    await admin.create(ClusterRole, role)
    await admin.create(ClusterRoleBinding, binding)
  }

  /** A node that its agent has reported, empty; the caches have it. */
  async function addNode(
    name: string,
    {
      spec = {},
      status = {},
      isSchedulable = true,
      room = {},
    }: {
      readonly spec?: Partial<NodeSpec>
      readonly status?: Partial<NodeStatus>
      readonly isSchedulable?: boolean
      readonly room?: Partial<Room>
    } = {},
  ): Promise<void> {
    await admin.create(Node, {
      metadata: { name },
      spec: {
        zone: ZONE,
        rack: 'r1',
        roles: ['compute'],
        isCordoned: false,
        cpuOvercommit: 4,
        reservedMemoryMebibytes: 0,
        ...spec,
      },
    })
    const reported = {
      state: 'ready',
      isCordoned: false,
      isInMaintenance: false,
      logicalCpus: 4,
      memoryMebibytes: 8_192,
      agentVersion: '1',
      ...status,
    }
    caches.of(Node).apply(await admin.patch(Node, { name }, { status: reported }, 'status'))
    await mirrorNode(db, {
      node: name,
      zone: spec.zone ?? ZONE,
      rack: 'r1',
      cpuPool: spec.cpuPool ?? null,
      dedicatedAccountId: null,
      isSchedulable,
      total: { cores: 16, memoryMebibytes: 8_192, storageGibibytes: 100, ...room },
    })
  }

  /** A signed-in owner of a new account; the address is verified unless asked otherwise. */
  async function signUp(email: string, { isVerified = true } = {}): Promise<Person> {
    const from = `198.51.100.${(addresses += 1)}`
    await send('POST', '/v1/auth/signup', { body: { name: 'Ada', email, password: PASSWORD } }, from)
    if (isVerified) {
      const mail = await db
        .selectFrom('email_outbox')
        .select('body')
        .where('recipient', '=', email)
        .orderBy('created_at', 'desc')
        .executeTakeFirstOrThrow()
      const secret = /#token=(\S+)/.exec(mail.body)?.[1]
      await send('POST', '/v1/auth/email-verification/confirm', { body: { token: secret } }, from)
    }
    const logIn = await send('POST', '/v1/auth/login', { body: { email, password: PASSWORD } }, from)
    const cookies = [logIn.headers['set-cookie'] ?? []].flat().map((set) => set.split(';')[0] ?? '')
    const csrf = String(logIn.body['csrf_token'])
    const user = logIn.body['user'] as { readonly id: string; readonly account_id: string }
    const own: Person['send'] = (method, path, sent = {}) =>
      send(
        method,
        path,
        {
          ...sent,
          headers: {
            cookie: cookies.join('; '),
            ...(method === 'GET' ? {} : { 'x-csrf-token': csrf }),
            ...sent.headers,
          },
        },
        from,
      )
    return {
      email,
      accountId: user.account_id,
      userId: user.id,
      send: own,
      async token(scope) {
        const made = await own('POST', '/v1/account/tokens', { body: { name: `token ${(addresses += 1)}`, scope } })
        return String(made.body['token'])
      },
    }
  }

  /** Somebody with an account of their own who is a member of this account too, and signed in to it. */
  async function join(accountId: string, email: string, role: Role = 'member'): Promise<Person> {
    const person = await signUp(email)
    const membership = { account_id: accountId, user_id: person.userId, role, joined_at: new Date() }
    await db.insertInto('membership').values(membership).execute()
    await person.send('POST', '/v1/accounts/active', { body: { account_id: accountId } })
    return person
  }

  /** The audit entries that a request caused. */
  async function auditOf(
    reply: Reply,
  ): Promise<{ readonly action: string; readonly outcome: string; readonly resource_id: string }[]> {
    const rows = await db
      .selectFrom('audit_entry')
      .select('body')
      .where('request_id', '=', String(reply.headers['x-request-id']))
      .execute()
    return rows.map((row) => JSON.parse(row.body) as { action: string; outcome: string; resource_id: string })
  }

  /** What the request left in the log of staff and operators. */
  const staffAuditOf = async (reply: Reply): Promise<StaffAuditEntry[]> =>
    (await listStaffAudit(db, { limit: 10_000 })).filter(
      ({ request_id }) => request_id === reply.headers['x-request-id'],
    )

  return {
    objectStorage,
    /** Of object storage that is replicated, in the zones that tests name. */
    gateway,
    gatewayZones,
    controlPlanes,
    /** Of another region. */
    otherControlPlanes,
    /** The fake payment processor. */
    payments,
    /** From now on requests come at once. */
    hurry: () => void (paceMilliseconds = 0),
    /** Lets time pass for budgets. */
    pass: (milliseconds: number) => void (later += milliseconds),
    app,
    /** As the API server has it, with what stands between it and Kubernetes. */
    store,
    admin,
    caches,
    db,
    zone: ZONE,
    node: NODE,
    send,
    operate,
    grant,
    addNode,
    signUp,
    join,
    auditOf,
    staffAuditOf,
    async close() {
      stop.abort()
      if (options.core === undefined) await core.close()
    },
  }
}
export type Cloud = Awaited<ReturnType<typeof openCloud>>

const NO_AGENTS: AgentConnections = {
  async *follow() {
    throw new Error('there are no hosts here')
  },
  write: async () => 'unreachable',
}
