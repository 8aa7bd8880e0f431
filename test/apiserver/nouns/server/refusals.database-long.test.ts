/** Every change of a server by REST and by kubectl, in `test/golden/server.txt`: how it is refused, or what it writes
 *  and records. */
import { readFile, writeFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { admit } from '../../../../apiserver/kit/admission/admit.ts'
import { AdmissionReview } from '../../../../apiserver/kit/admission/review.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { claimNetwork } from '../../../../db/network/index.ts'
import { attachInterface } from '../../../../db/network-interface/index.ts'
import { claimServer } from '../../../../db/server/index.ts'
import { defined } from '../../../../domain/defined.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import { Problem } from '../../../../domain/problem.ts'
import { environment } from '../../../../kit/sys/process.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Template, Zone } from '../../../../resources/catalog/index.ts'
import { CustomImage } from '../../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../../resources/kit/labels.ts'
import { Network } from '../../../../resources/network/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { askTwice } from '../../ask-twice.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY, type Reply } from '../../cloud.ts'
import { AT, BARE_ZONE, openWorld, stanza, type World } from '../backup/world.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
const golden = new URL('../../../golden/server.txt', import.meta.url)
const CLOSED_ZONE = 'eu-1-closed'
const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const ROOM = { cores: 1, memoryMebibytes: 192, storageGibibytes: 1 }
const IMAGE = '00000000-0000-4000-8000-00000000000a'
const FAR_IMAGE = '00000000-0000-4000-8000-00000000000b'
let cloud: Cloud
let ada: Person
let world: World
let back: string
let front: string
let far: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  world = await openWorld(cloud, ada)
  await setQuotas(cloud.db, 1_000_000)
  const room = { cores: 100_000, memory_mebibytes: 10_000_000, storage_gibibytes: 100_000 }
  await cloud.db.updateTable('node_capacity').set(room).where('node', '=', cloud.node).execute()
  const spec = { displayName: 'C', region: 'eu-1', isClosed: true, capabilities: [] }
  cloud.caches.of(Zone).apply(await cloud.admin.create(Zone, { metadata: { name: CLOSED_ZONE }, spec }))
  const tiny = (await cloud.admin.get(Template, { name: 'tiny-linux' })) ?? expect.fail()
  for (const [name, more] of [
    ['hungry-linux', { minMemoryMebibytes: 100_000 }],
    ['large-linux', { minStorageGibibytes: 100 }],
  ] as const)
    cloud.caches
      .of(Template)
      .apply(await cloud.admin.create(Template, { metadata: { name }, spec: { ...tiny.spec, ...more } }))
  ;[back, front, far] = await Promise.all([
    network('back', '10.1.0.0/24'),
    network('front', '10.2.0.0/24'),
    network('far', '10.3.0.0/24', BARE_ZONE),
  ])
  for (const [name, zone] of [
    [IMAGE, cloud.zone],
    [FAR_IMAGE, BARE_ZONE],
  ] as const) {
    const image = await cloud.admin.create(CustomImage, {
      metadata: { name, namespace: world.namespace },
      spec: { zone, title: '', source: { storageId: 'a' }, labels: {} },
    })
    const status = { state: 'error' }
    cloud.caches.of(CustomImage).apply(image)
    cloud.caches
      .of(CustomImage)
      .apply(await cloud.admin.patch(CustomImage, { name, namespace: world.namespace }, { status }, 'status'))
  }
})
afterAll(() => cloud.close())

async function network(name: string, ipv4Cidr: string, zone = cloud.zone): Promise<string> {
  const id = newUuid(systemRandom)
  const of = { accountId: ada.accountId, networkId: id, zone, name, ipv4Cidr }
  const { ipv6Prefix } = await database.db.transaction().execute((tx) => claimNetwork(tx, of, systemRandom))
  const key = { namespace: world.namespace, name: id }
  await cloud.admin.create(Network, {
    metadata: key,
    spec: { zone, name, ipv4Cidr, dnsServers: [], dhcpEnabled: true, labels: {} },
  })
  cloud.caches.of(Network).apply(await cloud.admin.patch(Network, key, { status: { ipv4Cidr, ipv6Prefix } }, 'status'))
  return id
}

const stored = async (id: string) =>
  (await cloud.admin.get(Server, { namespace: world.namespace, name: id })) ?? expect.fail()

interface Ask {
  readonly id?: string
  readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path?: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** The refusal, or what is written and recorded. */
async function send({ method = 'POST', path = '', body, id, headers = {} }: Ask): Promise<string> {
  const before = id === undefined ? undefined : (await cloud.admin.get(Server, keyOf(id)))?.spec
  const suffix = id === undefined ? '' : `/${id}`
  const options = { headers, ...defined({ body }) }
  const reply = await askTwice({ cloud, person: ada }, { method, path: `/v1/servers${suffix}${path}`, options })
  const { reason, detail, errors = [] } = reply.body
  const fields = (errors as readonly { readonly field: string; readonly detail: string }[])
    .map(({ field, detail: why }) => ` [${field}: ${why}]`)
    .join('')
  const audit = await auditOf(reply)
  if (reply.status >= 300) return `${reply.status} ${reason ? `${reason}: ` : ''}${detail}${fields}${audit}`
  const name = id ?? String(reply.body['server'].id)
  return `${reply.status} ${Object.keys(reply.body).join(' ')}${audit}${writtenOf(before, (await stored(name)).spec)}`
}
const keyOf = (name: string) => ({ namespace: world.namespace, name })

async function auditOf(reply: Reply): Promise<string> {
  const entries = (await cloud.auditOf(reply)) as unknown as readonly Record<string, unknown>[]
  return entries
    .map(
      ({ action, outcome, changes, detail }) =>
        `\n           audit ${action} ${outcome} ${JSON.stringify(changes)} ${JSON.stringify(detail)}`,
    )
    .join('')
}

/** What the request has changed in the spec, and its operation with the seconds until its deadline. */
function writtenOf(before: ServerSpec | undefined, after: ServerSpec): string {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])] as (keyof ServerSpec)[]
  const changed = fields
    .filter((field) => field !== 'operation' && !isDeepStrictEqual(before?.[field], after[field]))
    .sort()
    .map((field) => `${field} ${JSON.stringify(after[field]) ?? 'removed'}`)
  const { operation } = after
  const begun =
    operation === undefined || isDeepStrictEqual(operation, before?.operation)
      ? []
      : [
          `${operation.kind} ${JSON.stringify(Object.entries(operation.arguments ?? {}).sort())} ` +
            `${(Date.parse(operation.deadlineAt) - Date.parse(operation.requestedAt)) / 1_000} s`,
        ]
  return [...changed, ...begun].map((line) => `\n           ${line}`).join('')
}

/** The refusal, or what is recorded. */
async function review(
  operation: 'CREATE' | 'UPDATE' | 'DELETE',
  objects: { readonly object?: unknown; readonly oldObject?: unknown },
): Promise<string> {
  const { request } = AdmissionReview.parse({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: newUuid(systemRandom),
      resource: { group: 'svccloud.dev', resource: 'servers' },
      userInfo: { username: 'grace@example.com' },
      namespace: world.namespace,
      operation,
      object: objects.object === undefined ? null : JSON.parse(JSON.stringify(objects.object)),
      oldObject: objects.oldObject === undefined ? null : JSON.parse(JSON.stringify(objects.oldObject)),
    },
  })
  const parts = { caches: cloud.caches, db: cloud.db, clock: systemClock, random: systemRandom, kinds: KINDS }
  try {
    const admitted = await admit(parts, request)
    return ['admitted', ...admitted.map(({ action, changes }) => `${action} ${JSON.stringify(changes)}`)].join(
      '\n           ',
    )
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { reason, errors = [] } = error.members
    const fields = errors.map(({ field, detail }) => ` [${field}: ${detail}]`).join('')
    return `${error.status} ${reason ? `${reason}: ` : ''}${error.message}${fields}`
  }
}

const NEW = {
  hostname: 'web',
  zone: 'eu-1-a',
  plan: 'tiny',
  template: 'tiny-linux',
  title: '',
  labels: {},
  desiredPower: 'running',
  sshKeys: [PUBLIC_KEY],
  haPolicy: 'restart',
  migrationPolicy: 'default',
  publicIpv4: false,
  metadataEnabled: true,
  isProtected: false,
} as const
const kubectlCreate = (spec: object, metadata: object = {}) =>
  review('CREATE', {
    object: {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Server',
      metadata: { name: newUuid(systemRandom), namespace: world.namespace, ...metadata },
      spec: { ...NEW, hostname: hostname(), ...spec },
    },
  })
async function kubectlUpdate(id: string, spec: object, metadata: object = {}): Promise<string> {
  const oldObject = await stored(id)
  return review('UPDATE', {
    oldObject,
    object: {
      ...oldObject,
      metadata: { ...oldObject.metadata, ...metadata },
      spec: { ...oldObject.spec, ...spec },
    },
  })
}
const kubectlDelete = async (id: string) => review('DELETE', { oldObject: await stored(id) })

let hosts = 0
const hostname = () => `h-${(hosts += 1)}`

type State = ServerStatus['state']
interface Given {
  readonly spec?: Partial<ServerSpec>
  readonly status?: Partial<ServerStatus>
  readonly name?: string
  readonly isDeleting?: boolean
  readonly networks?: readonly string[]
}

/** One in that state, with room on a host. */
async function server(state: State, { spec = {}, status = {}, networks = [], ...named }: Given = {}): Promise<string> {
  const power = state === 'stopped' ? 'stopped' : 'running'
  const of = { hostname: hostname(), sshKeys: [PUBLIC_KEY] }
  const entries = networks.length === 0 ? {} : { networks: networks.map((networkId) => ({ networkId })) }
  const has = { plan: 'tiny', cores: 1, memoryMebibytes: 192, storageGibibytes: 1, nodeName: cloud.node }
  const id = await world.server(
    state,
    power,
    { spec: { ...of, ...entries, ...spec }, status: { ...has, ...status } },
    named,
  )
  const claim = { accountId: ada.accountId, serverId: id, hostname: of.hostname, zone: cloud.zone }
  await cloud.db.transaction().execute(async (tx) => {
    const means = { now: new Date('2026-01-01'), random: systemRandom }
    await claimServer(tx, { ...claim, ...ROOM }, means)
    for (const networkId of networks)
      await attachInterface(tx, { ...claim, networkId, networkUid: newUuid(systemRandom) }, means)
  })
  return id
}

const UNREACHABLE: Partial<ServerStatus> = {
  conditions: [
    {
      type: 'HostReachable',
      status: 'False',
      reason: 'Silent',
      message: '',
      lastTransitionTime: AT,
      observedGeneration: 1,
    },
  ],
}
const FORGOTTEN: Partial<ServerStatus> = {
  conditions: [
    {
      type: 'Claimed',
      status: 'False',
      reason: 'Forgotten',
      message: '',
      lastTransitionTime: AT,
      observedGeneration: 1,
    },
  ],
}
const busy = (kind: OperationKind): Given => ({ spec: { operation: stanza(kind) } })

type Line = readonly [
  what: string,
  rest: (() => Promise<string>) | undefined,
  kubectl: (() => Promise<string>) | undefined,
]
type Arrange = () => Promise<string>

/** The same of a server as `arrange` makes it. */
const changed = (what: string, arrange: Arrange, ask: Ask | undefined, spec: object | undefined): Line => [
  what,
  ask === undefined ? undefined : async () => send({ id: await arrange(), ...ask }),
  spec === undefined ? undefined : async () => kubectlUpdate(await arrange(), spec),
]
const created = (what: string, body: object | undefined, spec: object | undefined): Line => [
  `create ${what}`,
  body === undefined
    ? undefined
    : () =>
        send({
          body: {
            zone: 'eu-1-a',
            hostname: hostname(),
            plan: 'tiny',
            template: 'tiny-linux',
            ssh_keys: [PUBLIC_KEY],
            ...body,
          },
        }),
  spec === undefined ? undefined : () => kubectlCreate(spec),
]
const STATES: readonly State[] = ['creating', 'starting', 'started', 'stopping', 'stopped', 'deleting', 'error']
type Make = (what: string, arrange: Arrange) => Line
/** In every state, and in the others that the rules know. */
const inEach = (what: string, of: Make): readonly Line[] => [
  ...STATES.map((state) => of(`${what} one that is ${state}`, () => server(state))),
  of(`${what} one in error that is forgotten`, () => server('error', { status: FORGOTTEN })),
  of(`${what} one that is started and whose host does not answer`, () => server('started', { status: UNREACHABLE })),
  of(`${what} one in error whose host does not answer`, () => server('error', { status: UNREACHABLE })),
  of(`${what} one that is started and busy`, () => server('started', busy('server.metadata'))),
  of(`${what} one that is being made`, () => server('creating', busy('server.create'))),
  of(`${what} one that is protected`, () => server('started', { spec: { isProtected: true } })),
  ...inSome(what, of),
]
/** In those that changes in any state know. */
const inSome = (what: string, of: Make): readonly Line[] => [
  of(`${what} one that is stopped and whose host does not answer`, () => server('stopped', { status: UNREACHABLE })),
  of(`${what} one that is stopped and busy`, () => server('stopped', busy('server.metadata'))),
  of(`${what} one that is being deleted`, () => server('stopped', { isDeleting: true })),
  ...['node_pool:p', 'dev_cluster:d', 'edge:e'].map((managedBy) =>
    of(`${what} a machine of ${managedBy}`, () => server('stopped', { spec: { managedBy } })),
  ),
  of(`${what} a machine of node_pool:p by its name`, () =>
    server('stopped', { name: `machine-node-${newUuid(systemRandom)}`, spec: { managedBy: 'node_pool:p' } }),
  ),
  of(`${what} a machine that nobody sees`, () =>
    server('stopped', { name: `machine-${newUuid(systemRandom)}`, spec: { managedBy: 'edge:e' } }),
  ),
]

const SOFT = { stop_type: 'soft', timeout_seconds: 90, timeout_action: 'fail' } as const
const FIREWALL = { enabled: true, defaultInbound: 'drop', defaultOutbound: 'accept', rules: [] } as const
const asInput = { enabled: true, default_inbound: 'drop', default_outbound: 'accept', rules: [] } as const
const rule = {
  direction: 'in',
  action: 'accept',
  family: 'any',
  protocol: 'any',
  remoteCidrs: [],
  comment: '',
} as const
const ruleInput = { direction: 'in', action: 'accept' } as const
const stopped = () => server('stopped')
const started = () => server('started')
const sized = (what: string, body: object | undefined, spec: object | undefined, arrange: Arrange = stopped): Line =>
  changed(
    `change the plan ${what}`,
    arrange,
    body === undefined ? undefined : { path: '/change-plan', body: { plan: 'starter-1c-1g', ...body } },
    spec,
  )
const attached = (what: string, arrange: Arrange, entry: () => object): Line => [
  `attach ${what}`,
  async () => {
    const { networkId, ipv4Address } = entry() as Record<string, string>
    const body = { network_id: networkId, ...defined({ ipv4_address: ipv4Address }) }
    return send({ id: await arrange(), path: '/interfaces', body })
  },
  async () => {
    const id = await arrange()
    return kubectlUpdate(id, { networks: [...((await stored(id)).spec.networks ?? []), entry()] })
  },
]
const detached = (what: string, arrange: Arrange): Line => [
  `detach ${what}`,
  async () => {
    const id = await arrange()
    const { items = [] } = (await ada.send('GET', `/v1/servers/${id}/interfaces`)).body
    const { id: interfaceId = UNKNOWN } =
      (items as { kind: string; id: string }[]).find(({ kind }) => kind === 'private') ?? {}
    return send({ id, method: 'DELETE', path: `/interfaces/${interfaceId}` })
  },
  async () => kubectlUpdate(await arrange(), { networks: [] }),
]
const updated = (what: string, body: object, spec: object | undefined, of: Given = {}): Line =>
  changed(`update ${what}`, () => server('started', of), { method: 'PATCH', body }, spec)

const LINES: readonly Line[] = [
  created('', {}, {}),
  created('that stays stopped', { start: false }, { desiredPower: 'stopped' }),
  created(
    'with everything',
    { title: 'A', labels: { a: 'b' }, firewall: asInput, backup_schedule: '30 3 * * *' },
    {
      title: 'A',
      labels: { a: 'b' },
      firewall: FIREWALL,
      backupSchedule: '30 3 * * *',
    },
  ),
  created('with a title of no form', { title: 'a\u0007' }, { title: 'a\u0007' }),
  created('with labels of no form', { labels: { 'a b': '' } }, { labels: { 'a b': '' } }),
  created('with a key of no form', { ssh_keys: ['nothing'] }, { sshKeys: ['nothing'] }),
  created('without keys', { ssh_keys: [] }, { sshKeys: [] }),
  created('without keys, with user data', undefined, { sshKeys: [], userDataSecretName: 'data' }),
  created('with a key that is not there', { ssh_key_ids: [UNKNOWN] }, undefined),
  created('with user data of no form', { user_data: 'nothing' }, undefined),
  created('with an init script', { init_script_id: UNKNOWN }, { initScriptId: UNKNOWN }),
  created('with a schedule of no form', { backup_schedule: 'now' }, { backupSchedule: 'now' }),
  created(
    'with a schedule in a zone without backups',
    { zone: BARE_ZONE, backup_schedule: '30 3 * * *' },
    { zone: BARE_ZONE, backupSchedule: '30 3 * * *' },
  ),
  created('in no zone', { zone: 'eu-9' }, { zone: 'eu-9' }),
  created('in a closed zone', { zone: CLOSED_ZONE }, { zone: CLOSED_ZONE }),
  created('in a zone without room', { zone: BARE_ZONE }, { zone: BARE_ZONE }),
  created('with no plan', { plan: 'nothing' }, { plan: 'nothing' }),
  created('with a plan for databases', { plan: 'db-small' }, { plan: 'db-small' }),
  created('with no template', { template: 'nothing' }, { template: 'nothing' }),
  created('with a template of machines', { template: 'managed-machine' }, { template: 'managed-machine' }),
  created('with neither template nor image', { template: undefined }, { template: undefined }),
  created('with both', { custom_image_id: IMAGE }, { customImageId: IMAGE }),
  created(
    'from an image that is not there',
    { template: undefined, custom_image_id: UNKNOWN },
    { template: undefined, customImageId: UNKNOWN },
  ),
  created(
    'from an image of another zone',
    { template: undefined, custom_image_id: FAR_IMAGE },
    { template: undefined, customImageId: FAR_IMAGE },
  ),
  created(
    'from an image that is not online',
    { template: undefined, custom_image_id: IMAGE },
    { template: undefined, customImageId: IMAGE },
  ),
  created('with a template that needs memory', { template: 'hungry-linux' }, { template: 'hungry-linux' }),
  created('with a template that needs storage', { template: 'large-linux' }, { template: 'large-linux' }),
  created(
    'with less storage than the plan',
    { plan: 'starter-1c-1g', storage_gibibytes: 1 },
    { plan: 'starter-1c-1g', storageGibibytes: 1 },
  ),
  created('with more storage than any', { storage_gibibytes: 16_385 }, { storageGibibytes: 16_385 }),
  created('with more storage', { storage_gibibytes: 2 }, { storageGibibytes: 2 }),
  ['create with a network', () => create({ networks: [{ network_id: back }] }), () => kubectlCreate(inNetworks(back))],
  [
    'create with a network of another zone',
    () => create({ networks: [{ network_id: far }] }),
    () => kubectlCreate(inNetworks(far)),
  ],
  [
    'create with a network twice',
    () => create({ networks: [{ network_id: back }, { network_id: back }] }),
    () => kubectlCreate(inNetworks(back, back)),
  ],
  [
    'create with a network that is not there',
    () => create({ networks: [{ network_id: UNKNOWN }] }),
    () => kubectlCreate(inNetworks(UNKNOWN)),
  ],
  created('in a group that is not there', { server_group_id: UNKNOWN }, { serverGroupId: UNKNOWN }),
  created(
    'with a firewall of no form',
    { firewall: { ...asInput, rules: [{ ...ruleInput, port_start: 1 }] } },
    { firewall: { ...FIREWALL, rules: [{ ...rule, portStart: 1 }] } },
  ),
  created(
    'with a firewall in a zone without filters',
    { zone: BARE_ZONE, firewall: asInput },
    { zone: BARE_ZONE, firewall: FIREWALL },
  ),
  created('with an operation', undefined, { operation: stanza('server.create') }),
  created('with a boot storage', undefined, { bootStorageId: 'a' }),
  created('managed', undefined, { managedBy: 'edge:e' }),
  created('with shared addresses', undefined, { sharedAddresses: [] }),
  ['create with a name of machines', undefined, () => kubectlCreate({}, { name: `machine-${newUuid(systemRandom)}` })],
  [
    'create with a name that is taken',
    async () => create({ hostname: (await stored(await started())).spec.hostname }),
    async () => kubectlCreate({ hostname: (await stored(await started())).spec.hostname }),
  ],

  ...inEach('start', (what, arrange) => changed(what, arrange, { path: '/start' }, { desiredPower: 'running' })),
  ...inEach('stop', (what, arrange) =>
    changed(what, arrange, { path: '/stop', body: {} }, { desiredPower: 'stopped' }),
  ),
  changed('stop softly', started, { path: '/stop', body: SOFT }, undefined),
  changed('stop hard', started, { path: '/stop', body: { stop_type: 'hard' } }, undefined),
  ...inEach('restart', (what, arrange) => changed(what, arrange, { path: '/restart', body: SOFT }, undefined)),
  ...inEach('rebuild', (what, arrange) => changed(what, arrange, { path: '/rebuild', body: {} }, undefined)),
  changed('rebuild one that is started, stopping it', started, { path: '/rebuild', body: { stop: true } }, undefined),
  ...inEach('delete', (what, arrange) => [
    what,
    async () => send({ id: await arrange(), method: 'DELETE' }),
    async () => kubectlDelete(await arrange()),
  ]),
  changed('delete with storages', started, { method: 'DELETE', path: '?delete_storages=true' }, undefined),
  changed('delete one that is not there', async () => UNKNOWN, { method: 'DELETE' }, undefined),

  ...inEach('change the plan of', (what, arrange) =>
    changed(
      what,
      arrange,
      { path: '/change-plan', body: { plan: 'starter-1c-1g' } },
      { plan: 'starter-1c-1g', storageGibibytes: 10 },
    ),
  ),
  sized('and start it', { start: true }, { plan: 'starter-1c-1g', storageGibibytes: 10, desiredPower: 'running' }),
  sized('and leave its storage', { grow_storage: false }, { plan: 'starter-1c-1g' }),
  sized('to none', { plan: 'nothing' }, { plan: 'nothing' }),
  sized('to one for databases', { plan: 'db-small' }, { plan: 'db-small' }),
  sized('to the same', { plan: 'tiny' }, {}),
  sized('to the same with more storage', undefined, { storageGibibytes: 4 }),
  sized('to the same with less storage', undefined, { storageGibibytes: 1 }, () =>
    server('stopped', { spec: { storageGibibytes: 2 }, status: { storageGibibytes: 2 } }),
  ),
  sized('to the same with more storage than any', undefined, { storageGibibytes: 16_385 }),
  sized('to one with less storage', { plan: 'tiny' }, { plan: 'tiny' }, () =>
    server('stopped', {
      spec: { plan: 'starter-1c-1g', storageGibibytes: 10 },
      status: { plan: 'starter-1c-1g', storageGibibytes: 10 },
    }),
  ),
  sized('to one with too little memory', {}, { plan: 'starter-1c-1g' }, () =>
    server('stopped', { spec: { template: 'hungry-linux' } }),
  ),
  sized('to one that finds no room', { plan: 'starter-1c-1g' }, { plan: 'starter-1c-1g' }, () =>
    world.server('stopped', 'stopped', { status: { plan: 'tiny', storageGibibytes: 1 } }),
  ),
  sized('of one that is started, to none', { plan: 'nothing' }, { plan: 'nothing' }, started),

  ...inSome('set the metadata service of', (what, arrange) =>
    changed(what, arrange, { method: 'PUT', path: '/metadata', body: { enabled: false } }, { metadataEnabled: false }),
  ),
  changed(
    'set the metadata service as it is',
    started,
    { method: 'PUT', path: '/metadata', body: { enabled: true } },
    {},
  ),
  ...inSome('set the firewall of', (what, arrange) =>
    changed(what, arrange, { method: 'PUT', path: '/firewall', body: asInput }, { firewall: FIREWALL }),
  ),
  changed(
    'set the firewall as it is',
    () => server('started', { spec: { firewall: { ...FIREWALL, rules: [] } } }),
    { method: 'PUT', path: '/firewall', body: asInput },
    {},
  ),
  changed(
    'set a firewall of no form',
    started,
    { method: 'PUT', path: '/firewall', body: { ...asInput, rules: [{ ...ruleInput, port_start: 1 }] } },
    { firewall: { ...FIREWALL, rules: [{ ...rule, portStart: 1 }] } },
  ),
  changed(
    'set a firewall with too many rules',
    started,
    { method: 'PUT', path: '/firewall', body: { ...asInput, rules: Array.from({ length: 101 }, () => ruleInput) } },
    { firewall: { ...FIREWALL, rules: Array.from({ length: 101 }, () => rule) } },
  ),
  ...[true, false].map((enabled) =>
    changed(
      `set a firewall that is ${enabled ? 'on' : 'off'} in a zone without filters`,
      () => server('started', { spec: { zone: BARE_ZONE } }),
      { method: 'PUT', path: '/firewall', body: { ...asInput, enabled } },
      { firewall: { ...FIREWALL, enabled } },
    ),
  ),

  ...inSome('attach', (what, arrange) => {
    const [, rest, kubectl] = attached(what, arrange, () => ({ networkId: back }))
    return [what, rest, kubectl]
  }),
  attached(
    'a network that it has',
    () => server('started', { networks: [back] }),
    () => ({ networkId: back }),
  ),
  attached('a network of another zone', started, () => ({ networkId: far })),
  attached('a network that is not there', started, () => ({ networkId: UNKNOWN })),
  attached('a network with an address', started, () => ({ networkId: back, ipv4Address: '10.1.0.77' })),
  attached('a network with an address of another', started, () => ({ networkId: back, ipv4Address: '10.9.0.7' })),
  detached('a network', () => server('started', { networks: [back] })),
  detached('none', started),
  ...(['started', 'stopped', 'creating'] as const).map((state) =>
    detached(`a network of one that is ${state} and busy`, () =>
      server(state, { ...busy('server.metadata'), networks: [back] }),
    ),
  ),
  [
    'exchange a network',
    undefined,
    async () => kubectlUpdate(await server('started', { networks: [back] }), inNetworks(front)),
  ],
  [
    'change the address in a network',
    undefined,
    async () =>
      kubectlUpdate(await server('started', { networks: [back] }), {
        networks: [{ networkId: back, ipv4Address: '10.1.0.99' }],
      }),
  ],

  updated('nothing', {}, {}),
  updated('the title', { title: 'b' }, { title: 'b' }),
  updated('the title, of no form', { title: 'a\u0007' }, { title: 'a\u0007' }),
  updated('labels', { labels: { a: 'b' } }, { labels: { a: 'b' } }, { spec: { labels: { c: 'd' } } }),
  updated('labels, of no form', { labels: { 'a b': '' } }, { labels: { 'a b': '' } }),
  updated('protection', { is_protected: true }, { isProtected: true }),
  updated(
    'all of them',
    { title: 'b', labels: {}, is_protected: false },
    { title: 'b' },
    {
      spec: { labels: { a: 'b' }, isProtected: true },
    },
  ),
  changed('update keys', started, undefined, { sshKeys: [PUBLIC_KEY, PUBLIC_KEY] }),
  changed('update keys, of no form', started, undefined, { sshKeys: ['nothing'] }),
  changed('update keys, to none', started, undefined, { sshKeys: [] }),
  ...inSome('update', (what, arrange) =>
    changed(what, arrange, { method: 'PATCH', body: { title: 'b' } }, { title: 'b' }),
  ),
  ...['*', '"1"', '"99"'].map((version) =>
    changed(
      `update version ${version}`,
      started,
      { method: 'PATCH', body: { title: 'b' }, headers: { 'if-match': version } },
      undefined,
    ),
  ),
  changed('stop version "99"', started, { path: '/stop', body: {}, headers: { 'if-match': '"99"' } }, undefined),
  changed(
    'set the high availability policy',
    started,
    { method: 'PUT', path: '/ha-policy', body: { ha_policy: 'none' } },
    { haPolicy: 'none' },
  ),
  changed(
    'set the high availability policy as it is',
    started,
    { method: 'PUT', path: '/ha-policy', body: { ha_policy: 'restart' } },
    undefined,
  ),
  changed(
    'set the migration policy',
    started,
    { method: 'PUT', path: '/migration-policy', body: { migration_policy: 'strict' } },
    { migrationPolicy: 'strict' },
  ),
  changed('set several', started, undefined, {
    title: 'b',
    haPolicy: 'none',
    desiredPower: 'stopped',
    metadataEnabled: false,
    firewall: FIREWALL,
  }),
  ...Object.entries({
    bootStorageId: 'a',
    hostname: 'other',
    zone: BARE_ZONE,
    template: 'other',
    customImageId: 'a',
    userDataSecretName: 'a',
    initScriptId: 'a',
    serverGroupId: 'a',
    publicIpv4: true,
    managedBy: 'edge:e',
    sharedAddresses: [],
    backupSchedule: '30 3 * * *',
  }).map(([field, value]) => changed(`change ${field}`, started, undefined, { [field]: value })),
  changed('change the operation', started, undefined, { operation: stanza('server.start') }),
  [
    'change the note',
    undefined,
    async () => kubectlUpdate(await started(), {}, { annotations: { [LAST_CHANGE_ANNOTATION]: 'x' } }),
  ],
  [
    'take away the finalizer',
    undefined,
    async () => {
      const object = await stored(await started())
      const finalizers = [finalizerOf(Server)]
      return review('UPDATE', { object, oldObject: { ...object, metadata: { ...object.metadata, finalizers } } })
    },
  ],
]

function inNetworks(...ids: readonly string[]): object {
  return { networks: ids.map((networkId) => ({ networkId })) }
}
function create(body: object): Promise<string> {
  return created('', body, undefined)[1]?.() ?? expect.fail()
}

const nameless = (text: string): string =>
  text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/([0-9a-f]{2}:){5}[0-9a-f]{2}/g, '<mac>')
    .replaceAll(/\bh-\d+/g, '<host>')

test('every change of a server is refused or written in the same words as before', { timeout: 600_000 }, async () => {
  const lines: string[] = []
  for (const [what, rest, kubectl] of LINES) {
    lines.push(`${what.trim()}`)
    if (rest !== undefined) lines.push(`  REST     ${nameless(await rest())}`)
    if (kubectl !== undefined) lines.push(`  kubectl  ${nameless(await kubectl())}`)
  }
  const text = `${lines.join('\n')}\n`
  if (environment()['UPDATE'] === '1') await writeFile(golden, text)
  expect(text).toBe(await readFile(golden, 'utf8'))
})
