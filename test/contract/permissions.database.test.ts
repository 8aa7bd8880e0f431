/** Every route, asked for by every kind of caller, against the contract's table of roles, scopes and support modes,
 *  written out here once more. The pipeline, the routes and the credentials are real; handlers are replaced, so that
 *  what is seen is who is let through. */
import { beforeAll, expect, test } from 'vitest'
import { createSealing } from '../../kit/sys/sealing.ts'
import { formatClusterToken, formatToken } from '../../kit/sys/token-format.ts'
import { createToken } from '../../db/identity/index.ts'
import { createClusterToken } from '../../db/kubernetes-cluster/index.ts'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import type { ClusterScope, Permission, TokenScope } from '../../domain/permissions.ts'
import { createPipeline, requestDurations } from '../../kit/http/pipeline.ts'
import type { Route } from '../../kit/http/route.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { newBase62, newUuid, systemRandom } from '../../kit/sys/random.ts'
import { ROUTES } from '../../resources/index.ts'
import { createStaff, createStaffSession, issueSupportSession, redeemSupportCode } from '../../db/staff/index.ts'
import { GOOD_PASSWORD, openHarness } from '../apiserver/identity/harness.ts'
import { useDatabase } from '../database.ts'
import { documentCheckFor } from './document-check.ts'

const database = useDatabase()
const READ_AND_LIST: readonly Permission[] = ['read', 'billing.read']
const HELD: Readonly<Record<string, readonly Permission[]>> = {
  owner: ['read', 'operate', 'members.manage', 'tokens.manage', 'billing.read', 'billing.manage', 'self'],
  admin: ['read', 'operate', 'members.manage', 'tokens.manage', 'billing.read', 'billing.manage', 'self'],
  member: ['read', 'operate', 'tokens.manage', 'self'],
  viewer: ['read', 'self'],
}
const SUPPORT_HELD: Readonly<Record<string, readonly Permission[]>> = {
  read_only: ['read', 'billing.read'],
  elevated: ['read', 'operate', 'billing.read'],
}
/** What tokens of clusters are for, and nothing else. */
const CLUSTER_ROUTES: Readonly<Record<ClusterScope, readonly string[]>> = {
  storages: [
    'list_storages',
    'create_storage',
    'get_storage',
    'delete_storage',
    'attach_storage',
    'detach_storage',
    'resize_storage',
    'create_snapshot',
    'list_snapshots',
    'get_snapshot',
    'delete_snapshot',
    'get_server',
    'list_operations',
    'get_operation',
  ],
  load_balancers: [
    'list_load_balancers',
    'create_load_balancer',
    'get_load_balancer',
    'delete_load_balancer',
    'set_load_balancer_configuration',
    'get_kubernetes_cluster',
    'list_server_interfaces',
  ],
}
const SCOPES: readonly TokenScope[] = ['read', 'read_write', ...HELD['owner']!.map((permission) => [permission])]

interface Asker {
  readonly name: string
  readonly kind: 'nobody' | 'session' | 'token' | 'support' | 'staff' | 'cluster' | 'add-on'
  readonly held: readonly Permission[]
  readonly isReadOnly: boolean
  readonly staffRole?: string
  /** Of an add-on of a customer's cluster. */
  readonly scope?: ClusterScope
  /** Of a token of the management cluster: what it may do with which kinds, as `verb resource`. */
  readonly rights?: readonly string[]
  readonly headers: Readonly<Record<string, string>>
}

const askers: Asker[] = []
let ask: (route: Route, asker: Asker) => Promise<number>

beforeAll(async () => {
  const { db } = database
  const cluster = await openCluster()
  const harness = await openHarness(db, { kubernetes: cluster.serve })
  const { clock, identity } = harness
  const pipelineOf = (audience: 'customer' | 'operator') =>
    createPipeline({
      ...identity,
      authenticate: audience === 'customer' ? identity.authenticate : identity.authenticateOperator,
      countRequest: async () => 0,
      endpoints: ROUTES.filter((route) => route.audience === audience).map((route) => ({
        route,
        handle: async () => ({ status: 204 }),
      })),
      auditRefusal: async () => undefined,
      translate: (error: unknown) => error,
      clock,
      random: systemRandom,
      log: silentLog,
      durations: requestDurations(openRegistry({ isProcessWide: false })),
      trustedProxies: [],
      origins: [],
      isSecure: false,
      checkAnswers: false,
    })
  const pipelines = { customer: pipelineOf('customer'), operator: pipelineOf('operator') }
  ask = async (route, asker) => {
    clock.move(0.11) // a token of the budget for each request
    const target = route.path.replaceAll(/\{\w+\}/g, newUuid(systemRandom))
    const response = await pipelines[route.audience]({
      method: route.method,
      target,
      headers: asker.headers,
      remoteAddress: '192.0.2.7',
      signal: new AbortController().signal,
    })
    // What is let through comes from no real handler.
    const fault =
      response.status < 400
        ? undefined
        : documentCheckFor(route.audience).faultOf(route.method, target, {
            status: response.status,
            text: String(response.body),
            header: (name) => response.headers[name]?.toString(),
          })
    if (fault !== undefined) throw new Error(`${route.id} for ${asker.name}: ${fault}`)
    return response.status
  }

  askers.push({ name: 'nobody', kind: 'nobody', held: [], isReadOnly: false, headers: {} })
  const headersOf = (cookies: ReadonlyMap<string, string>) => ({
    cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    'x-csrf-token': cookies.get('svccloud_csrf') ?? '',
  })
  let owner: { readonly accountId: string; readonly userId: string } | undefined
  for (const [role, held] of Object.entries(HELD)) {
    const browser = await harness.signUpAndIn(`${role}@example.com`)
    const me = (await browser.send('GET', '/v1/auth/me')).body as { account_id: string; user: { id: string } }
    owner ??= { accountId: me.account_id, userId: me.user.id }
    await db
      .updateTable('membership')
      .set({ role: role as 'owner' })
      .where('user_id', '=', me.user.id)
      .execute()
    askers.push({
      name: `${role} session`,
      kind: 'session',
      held,
      isReadOnly: false,
      headers: headersOf(browser.cookies),
    })
    for (const scope of SCOPES) {
      const token = formatToken(scope, newBase62(systemRandom, 40))
      await createToken(db, {
        id: newUuid(systemRandom),
        accountId: me.account_id,
        userId: me.user.id,
        name: JSON.stringify(scope),
        token,
        scope,
        allowedCidrs: [],
        createdAt: clock.now(),
        expiresAt: null,
      })
      const effective =
        scope === 'read'
          ? held.filter((permission) => READ_AND_LIST.includes(permission))
          : scope === 'read_write'
            ? held.filter((permission) => !['self', 'members.manage', 'tokens.manage'].includes(permission))
            : held.filter((permission) => scope.includes(permission))
      const isReadOnly =
        scope === 'read' || (scope !== 'read_write' && scope.every((permission) => READ_AND_LIST.includes(permission)))
      askers.push({
        name: `${role} token ${JSON.stringify(scope)}`,
        kind: 'token',
        held: effective,
        isReadOnly,
        headers: { authorization: `Bearer ${token}` },
      })
    }
  }
  const own = { accountId: owner?.accountId ?? '', clusterId: 'shop' }
  await db
    .insertInto('kubernetes_cluster')
    .values({
      account_id: own.accountId,
      id: own.clusterId,
      zone: 'eu-1a',
      region: 'eu-1',
      name: 'shop',
      network_id: 'back',
      control_plane_id: newUuid(systemRandom),
      release: '1.36.3',
      replicas: 1,
      pod_cidr: '10.1.0.0/16',
      service_cidr: '10.2.0.0/16',
    })
    .execute()
  for (const scope of ['storages', 'load_balancers'] as const) {
    const token = formatClusterToken(newBase62(systemRandom, 40))
    await createClusterToken(db, own, {
      id: newUuid(systemRandom),
      program: scope,
      token,
      scopes: [scope],
      createdAt: clock.now(),
      expiresAt: new Date(clock.now().getTime() + 3_600_000),
    })
    const headers = { authorization: `Bearer ${token}` }
    askers.push({
      name: `token of a cluster for ${scope}`,
      kind: 'add-on',
      held: [],
      isReadOnly: false,
      scope,
      headers,
    })
  }
  for (const mode of ['read_only', 'elevated'] as const) {
    const secret = `support_${newBase62(systemRandom, 43)}`
    const id = newUuid(systemRandom)
    const staffId = newUuid(systemRandom)
    const member = { email: `${mode}@staff.example`, name: 'S', role: 'support' } as const
    const signIn = { passwordHash: GOOD_PASSWORD, sealedSecret: 'x', now: clock.now() }
    await createStaff(db, { id: staffId, ...member, ...signIn })
    const times = {
      createdAt: clock.now(),
      codeExpiresAt: new Date(clock.now().getTime() + 60_000),
      expiresAt: new Date(clock.now().getTime() + 3_600_000),
    }
    await db.transaction().execute(async (tx) => {
      await issueSupportSession(tx, {
        id,
        ...owner!,
        consentId: null,
        staffId,
        staffEmail: 's@staff.example',
        staffName: 'S',
        mode,
        reason: 'r',
        ticket: null,
        code: mode,
        ...times,
      })
      await redeemSupportCode(tx, mode, secret, clock.now())
    })
    const browser = harness.openBrowser()
    browser.cookies.set('svccloud_session', secret)
    const { csrf_token: csrf } = (await browser.send('GET', '/v1/auth/me')).body
    browser.cookies.set('svccloud_csrf', String(csrf))
    askers.push({
      name: `support ${mode}`,
      kind: 'support',
      held: SUPPORT_HELD[mode]!,
      isReadOnly: mode === 'read_only',
      headers: headersOf(browser.cookies),
    })
  }
  const sealing = createSealing([{ id: 'k', key: systemRandom.bytes(32) }], systemRandom)
  for (const role of ['support', 'finance', 'operations'] as const) {
    const id = newUuid(systemRandom)
    const session = { id: newUuid(systemRandom), secret: newBase62(systemRandom, 43) }
    await createStaff(db, {
      id,
      email: `${role}@staff.example`,
      name: role,
      role,
      passwordHash: GOOD_PASSWORD,
      sealedSecret: sealing.seal('x', id),
      now: clock.now(),
    })
    await createStaffSession(db, {
      ...session,
      staffId: id,
      now: clock.now(),
      expiresAt: new Date(clock.now().getTime() + 3_600_000),
    })
    const browser = harness.openBrowser('10.0.0.1', 'operator')
    browser.cookies.set('svccloud_staff_session', session.secret)
    const { csrf_token: csrf } = (await browser.send('GET', '/v1/admin/auth/me')).body
    askers.push({
      name: `staff ${role}`,
      kind: 'staff',
      held: [],
      isReadOnly: false,
      staffRole: role,
      headers: {
        cookie: `svccloud_staff_session=${session.secret}; svccloud_staff_csrf=${String(csrf)}`,
        'x-csrf-token': String(csrf),
      },
    })
  }
  const asCluster = { kind: 'cluster', held: [], isReadOnly: false } as const
  for (const role of ['support', 'finance', 'operations']) {
    await cluster.grant(`staff-${role}`, { resources: ['staffroles'], resourceNames: [role], verbs: ['use'] })
    const headers = bearer(`staff-${role}`)
    askers.push({ ...asCluster, name: `cluster token, staff ${role}`, staffRole: role, rights: [], headers })
  }
  await cluster.grant('reader', { resources: ['nodes', 'publicpools'], verbs: ['get', 'list'] })
  askers.push(
    { ...asCluster, name: 'cluster token without rights', rights: [], headers: bearer('nobody') },
    {
      ...asCluster,
      name: 'cluster token that reads nodes and pools',
      rights: ['get nodes', 'list nodes', 'get publicpools', 'list publicpools'],
      headers: bearer('reader'),
    },
  )
})
const bearer = (user: string) => ({ authorization: `Bearer ${user}` })

/** A management cluster whose tokens are the names of their users. */
async function openCluster() {
  const core = await openCore({
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    storage: memoryStorage(),
    authenticate: (token) =>
      token.startsWith('svccloud_') ? undefined : { name: token, groups: ['system:authenticated'] },
  })
  const serve: Transport = (request) => core.handle(request, ADMIN)
  const post = async (plural: string, object: object) => {
    const { status } = await serve({
      method: 'POST',
      path: `/apis/rbac.authorization.k8s.io/v1/${plural}`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(object),
    })
    if (status !== 201) throw new Error(`a right was not granted: ${status}`)
  }
  return {
    serve,
    /** The user may do so with kinds of the platform. */
    async grant(user: string, rule: object): Promise<void> {
      const apiGroup = 'rbac.authorization.k8s.io'
      const named = { apiVersion: `${apiGroup}/v1`, metadata: { name: user } }
      await post('clusterroles', { ...named, kind: 'ClusterRole', rules: [{ apiGroups: ['svccloud.dev'], ...rule }] })
      await post('clusterrolebindings', {
        ...named,
        kind: 'ClusterRoleBinding',
        roleRef: { apiGroup, kind: 'ClusterRole', name: user },
        subjects: [{ apiGroup, kind: 'User', name: user }],
      })
    },
  }
}

/** What the contract says; 'through' is anything that the pipeline asks after it knows that the caller may. */
function expected(route: Route, asker: Asker): 401 | 403 | 'through' {
  const takes = (credential: string) => (route.credentials as readonly string[]).includes(credential)
  if (takes('public') && route.credentials.length === 1) return 'through'
  if (route.audience === 'operator') {
    if (asker.kind === 'token' || asker.kind === 'add-on') return 401
    if (asker.kind !== 'staff' && asker.kind !== 'cluster') return takes('public') ? 'through' : 401
    if (takes('public')) return 'through'
    if (asker.kind === 'cluster' && route.access !== null) {
      // The handler finds out whose the target is and asks for that account.
      if (route.access.scope === 'account') return 'through'
      return asker.rights?.includes(`${route.access.verb} ${route.access.resource}`) === true ? 'through' : 403
    }
    const { staffRole } = asker
    if (staffRole === undefined) return 403
    return route.staffRole === 'any' || staffRole === 'operations' || staffRole === route.staffRole ? 'through' : 403
  }
  // A bearer token that is not one of ours is refused where any credential is looked at.
  if (asker.kind === 'cluster') return 401
  if (asker.kind === 'nobody' || asker.kind === 'staff') return takes('public') ? 'through' : 401
  if (asker.scope !== undefined) return CLUSTER_ROUTES[asker.scope].includes(route.id) ? 'through' : 403
  // Where only tokens are taken, nobody looks at a cookie.
  if (asker.kind !== 'token' && route.credentials.every((credential) => credential === 'token')) return 401
  if (!takes(asker.kind === 'token' ? 'token' : 'session')) return 403
  if (asker.kind === 'support' && route.isRefusedToSupport) return 403
  if (route.isCredentialRead && asker.isReadOnly) return 403
  return route.permission === null || asker.held.includes(route.permission) ? 'through' : 403
}

test('every route lets exactly those through whom the contract lets', async () => {
  const wrong: string[] = []
  let cases = 0
  for (const asker of askers) {
    for (const route of ROUTES.filter(({ path }) => path.startsWith('/v1/'))) {
      const status = await ask(route, asker)
      const seen = status === 401 || status === 403 ? status : 'through'
      cases += 1
      if (seen !== expected(route, asker) || status === 429 || status >= 500)
        wrong.push(`${asker.name}: ${route.id} answered ${status}, the contract says ${expected(route, asker)}`)
    }
  }
  expect(wrong).toEqual([])
  expect(cases).toBeGreaterThan(2_500)
})
